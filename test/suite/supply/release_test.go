package supply

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	released = "v0.1.0"
	constant = "AllPosthasteModulesMustHaveTheSameMinorVersion_v"
)

// small is a repository of four modules, for scripts/release. Its root is example.com/small.
var small = map[string]string{
	"LICENSE":     "Do as you like.\n",
	"SECURITY.md": "The newest release is repaired.\n",
	"CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n### Added\n" +
		"- Everything ([all](docs/outbox.md), [more](https://example.com/)).\n",
	"go.mod": "module example.com/small\n\ngo 1.26.0\n",
	"go.work": "go 1.26.0\n\nuse (\n\t.\n\t./cmd\n\t./relay\n\t./test\n)\n\nreplace (\n" +
		"\texample.com/small v0.0.0 => ./\n\texample.com/small/relay v0.0.0 => ./relay\n)\n",
	"internal/oneversion/oneversion.go": "package oneversion\n\nconst " + constant + "0_0 = true\n",
	"relay/go.mod": "module example.com/small/relay\n\ngo 1.26.0\n\n" +
		"require example.com/small v0.0.0\n",
	"relay/relay.go": "package relay\n\nimport \"example.com/small/internal/oneversion\"\n\n" +
		"const _ = oneversion." + constant + "0_0\n",
	"cmd/go.mod": "module example.com/small/cmd\n\ngo 1.26.0\n\nrequire example.com/small/relay v0.0.0\n\n" +
		"require example.com/small v0.0.0 // indirect\n",
	"cmd/small/main.go": "package main\n\nimport _ \"example.com/small/relay\"\n\nfunc main() {}\n",
	"test/go.mod":       "module example.com/small/test\n\ngo 1.26.0\n\nrequire example.com/small v0.0.0\n",
}

// repository is a git repository with these files and the scripts of a release, all committed.
type repository struct{ folder string }

func newRepository(t *testing.T) repository {
	t.Helper()
	r := repository{t.TempDir()}
	for _, name := range []string{"scripts/release", "scripts/module-proxy", "scripts/module-zip.go"} {
		r.write(t, name, read(t, filepath.Join(root, name)))
		if err := os.Chmod(filepath.Join(r.folder, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range small {
		r.write(t, name, text)
	}
	r.git(t, "init", "--quiet", "--initial-branch", "main")
	r.commit(t)
	return r
}

func (r repository) write(t *testing.T, name, text string) {
	t.Helper()
	name = filepath.Join(r.folder, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, name, text)
}

// replace changes a file and commits it.
func (r repository) replace(t *testing.T, name, from, to string) {
	t.Helper()
	old := read(t, filepath.Join(r.folder, name))
	changed := strings.Replace(old, from, to, 1)
	if changed == old {
		t.Fatalf("%s has no %q", name, from)
	}
	r.write(t, name, changed)
	r.commit(t)
}

// run starts a program in the repository.
func (r repository) run(t *testing.T, program string, args ...string) (code int, said string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, args...)
	command.Dir = r.folder
	// A hook of git that runs the tests has told them where its repository is.
	command.Env = slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "GIT_") })
	command.Env = append(command.Env, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=test", "GIT_AUTHOR_EMAIL=test@example.com",
		"GIT_COMMITTER_NAME=test", "GIT_COMMITTER_EMAIL=test@example.com")
	output, err := command.CombinedOutput()
	if err != nil && command.ProcessState == nil {
		t.Fatalf("%s: %v", program, err)
	}
	return command.ProcessState.ExitCode(), string(output)
}

func (r repository) git(t *testing.T, args ...string) string {
	t.Helper()
	code, said := r.run(t, "git", args...)
	if code != 0 {
		t.Fatalf("git %q: exit code %d\n%s", args, code, said)
	}
	return strings.TrimSpace(said)
}

func (r repository) commit(t *testing.T) {
	t.Helper()
	r.git(t, "add", "-A")
	r.git(t, "commit", "--quiet", "-m", "a change")
}

// release runs scripts/release.
func (r repository) release(t *testing.T, args ...string) (code int, said string) {
	t.Helper()
	return r.run(t, filepath.Join(r.folder, "scripts/release"), args...)
}

// must is a release that has to work.
func (r repository) must(t *testing.T, args ...string) string {
	t.Helper()
	code, said := r.release(t, args...)
	if code != 0 {
		t.Fatalf("scripts/release %q: exit code %d\n%s", args, code, said)
	}
	return said
}

// prepared is a repository in which everything is ready for the tags.
func prepared(t *testing.T) repository {
	t.Helper()
	r := newRepository(t)
	r.must(t, "prepare", released)
	r.commit(t)
	return r
}

// again is a copy of it.
func (r repository) again(t *testing.T) repository {
	t.Helper()
	other := repository{t.TempDir()}
	if err := os.CopyFS(other.folder, os.DirFS(r.folder)); err != nil {
		t.Fatal(err)
	}
	return other
}

func TestRelease(t *testing.T) {
	t.Parallel()
	r := prepared(t)
	const headings = "## Unreleased\n\n## 0.1.0 - 20"
	if text := read(t, filepath.Join(r.folder, "CHANGELOG.md")); !strings.Contains(text, headings) {
		t.Errorf("the changelog is\n%s", text)
	}
	if said := r.must(t, "notes", released); said != "### Added\n- Everything "+
		"([all](https://example.com/small/blob/v0.1.0/docs/outbox.md), [more](https://example.com/)).\n" {
		t.Errorf("the notes are %q", said)
	}
	before := r.git(t, "rev-parse", "HEAD")
	said := r.must(t, "tag", released, "--dry-run")
	if tags := r.git(t, "tag"); !strings.Contains(said, "tags=0 dry_run=1") || tags != "" {
		t.Errorf("a dry run says\n%sand there are the tags %q", said, tags)
	}
	said = r.must(t, "tag", released)
	for _, want := range []string{
		"git push --atomic origin v0.1.0 relay/v0.1.0\n", "git push origin cmd/v0.1.0\n", "modules=3 tags=3 dry_run=0",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
	if tags := r.git(t, "tag"); tags != "cmd/v0.1.0\nrelay/v0.1.0\nv0.1.0" {
		t.Errorf("the tags are %q", tags)
	}
	// The branch is where it was, and nothing is left beside it.
	if after := r.git(t, "rev-parse", "HEAD"); after != before || r.git(t, "status", "--porcelain") != "" {
		t.Errorf("the branch was at %s and is at %s: %s", before, after, r.git(t, "status"))
	}
	if trees := r.git(t, "worktree", "list"); strings.Contains(trees, "\n") {
		t.Errorf("a working tree is left: %s", trees)
	}
	for name, want := range map[string]string{
		"cmd/go.mod": "relay v0.1.0\n\nrequire example.com/small v0.1.0 // indirect",
		"go.work":    "\texample.com/small v0.1.0 => ./\n", "test/go.mod": "require example.com/small v0.1.0",
		"cmd/go.sum": "example.com/small v0.1.0 h1:", "test/go.sum": "example.com/small v0.1.0 h1:",
	} {
		if text := r.git(t, "show", "v0.1.0:"+name); !strings.Contains(text, want) {
			t.Errorf("%s has no %q:\n%s", name, want, text)
		}
	}
	if said := r.must(t, "check", released); !strings.Contains(said, "modules=3 tags=3 problems=0") {
		t.Errorf("the check says %s", said)
	}
	r.builds(t)
}

// builds holds the sums: whoever has cloned a tag builds outside of the workspace, and what the proxy has must be what
// go.sum says.
func (r repository) builds(t *testing.T) {
	t.Helper()
	proxy := t.TempDir()
	if code, said := r.run(t, filepath.Join(r.folder, "scripts/module-proxy"), proxy, "--tags", released); code != 0 {
		t.Fatalf("scripts/module-proxy: exit code %d\n%s", code, said)
	}
	r.git(t, "checkout", "--quiet", released)
	in := repository{filepath.Join(r.folder, "cmd")}
	environment := []string{
		"GOWORK=off", "GOFLAGS=-mod=readonly -modcacherw", "GOPROXY=file://" + proxy, "GONOSUMDB=example.com",
		"GOMODCACHE=" + t.TempDir(), "go",
	}
	for _, args := range [][]string{{"build", "-o", "/dev/null", "./..."}, {"mod", "verify"}, {"mod", "tidy", "-diff"}} {
		if code, said := in.run(t, "env", append(environment, args...)...); code != 0 {
			t.Errorf("go %q: exit code %d\n%s", args, code, said)
		}
	}
}

func TestWhatIsNoReleaseIsRejected(t *testing.T) {
	t.Parallel()
	ready := prepared(t)
	tags := func(names ...string) func(*testing.T, repository) {
		return func(t *testing.T, r repository) {
			t.Helper()
			for _, name := range names {
				r.git(t, "tag", name)
			}
		}
	}
	edit := func(name, from, to string) func(*testing.T, repository) {
		return func(t *testing.T, r repository) {
			t.Helper()
			r.replace(t, name, from, to)
		}
	}
	for name, c := range map[string]struct {
		args   []string
		change func(*testing.T, repository)
		says   string
	}{
		"a version without v":   {[]string{"tag", "0.1.0"}, nil, "'0.1.0' is no version of a release"},
		"a version too short":   {[]string{"tag", "v0.1"}, nil, "'v0.1' is no version of a release"},
		"a candidate":           {[]string{"tag", "v0.1.0-rc.1"}, nil, "is no version of a release"},
		"a leading zero":        {[]string{"tag", "v0.01.0"}, nil, "is no version of a release"},
		"the branch's version":  {[]string{"tag", "v0.0.0"}, nil, "while they are not released"},
		"another import path":   {[]string{"tag", "v2.0.0"}, nil, "have their major version in them"},
		"another minor version": {[]string{"tag", "v0.2.0"}, nil, "name " + constant + "0_1 and not " + constant + "0_2"},
		"no section":            {[]string{"tag", "v0.1.1"}, nil, "CHANGELOG.md has no section '## 0.1.1 - DATE'"},
		"an empty section": {
			[]string{"tag", released}, func(t *testing.T, r repository) {
				t.Helper()
				r.write(t, "CHANGELOG.md", "# Changelog\n\n## Unreleased\n\n## 0.1.0 - 2026-11-19\n")
				r.commit(t)
			}, "has no section '## 0.1.0",
		},
		"a page that is not true any more": {
			[]string{"tag", released},
			edit("SECURITY.md", "repaired", "repaired. There is no release yet"),
			"SECURITY.md says that there is no release",
		},
		"a tag": {[]string{"tag", released}, tags("relay/v0.1.0"), "the tag relay/v0.1.0 exists"},
		"an older patch": {
			[]string{"tag", released}, tags("v0.1.3"), "v0.1.3 is newer than v0.1.0",
		},
		"a replace directive": {
			[]string{"tag", released},
			edit("relay/go.mod", "require ", "replace example.com/small => ../\n\nrequire "),
			"relay/go.mod has a replace or exclude directive",
		},
		"a replace in a block": {
			[]string{"tag", released},
			edit("cmd/go.mod", "require ", "replace (\n\texample.com/small => ../\n)\n\nrequire "),
			"cmd/go.mod has a replace or exclude directive",
		},
		"another version of ours": {
			[]string{"tag", released},
			edit("cmd/go.mod", "relay v0.0.0", "relay v0.0.9"),
			"cmd/go.mod requires relay at v0.0.9 and not at v0.0.0",
		},
		"a module of another minor version": {
			[]string{"tag", released}, edit("relay/relay.go", constant+"0_1", constant+"0_7"), constant + "0_7",
		},
		"what is not committed": {
			[]string{"tag", released},
			func(t *testing.T, r repository) { t.Helper(); r.write(t, "new.go", "package small\n") }, "not committed: ?? new.go",
		},
		"nothing to tell": {[]string{"prepare", "v0.2.0"}, nil, "nothing under '## Unreleased'"},
		"told already":    {[]string{"prepare", released}, nil, "has a section of 0.1.0 already"},
		"no verb":         {nil, nil, "usage: scripts/release"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := ready.again(t)
			if c.change != nil {
				c.change(t, r)
			}
			before := r.git(t, "tag")
			if code, said := r.release(t, c.args...); code == 0 || !strings.Contains(said, c.says) {
				t.Errorf("exit code %d, want another and %q\n%s", code, c.says, said)
			}
			if after := r.git(t, "tag"); after != before {
				t.Errorf("it has made tags: %q", after)
			}
		})
	}
}

var allTags = []string{"v0.1.0", "relay/v0.1.0", "cmd/v0.1.0"}

// amended is a release whose commit has more in it, with all tags at that.
func amended(change func(*testing.T, repository)) func(*testing.T, repository) {
	return func(t *testing.T, r repository) {
		t.Helper()
		r.git(t, "checkout", "--quiet", released)
		change(t, r)
		r.git(t, "reset", "--quiet", "--soft", released)
		r.git(t, "commit", "--quiet", "--amend", "--no-edit")
		for _, tag := range allTags {
			r.git(t, "tag", "-f", tag)
		}
	}
}

// What was pushed to main, or to the branch of a patch, may be released.
func TestReleaseCheckKnowsTheBranches(t *testing.T) {
	t.Parallel()
	tagged := prepared(t)
	tagged.must(t, "tag", released)
	for _, branch := range []string{"main", "release-0.1"} {
		r := tagged.again(t)
		r.git(t, "remote", "add", "origin", r.folder)
		r.git(t, "update-ref", "refs/remotes/origin/main", "HEAD^")
		r.git(t, "update-ref", "refs/remotes/origin/"+branch, "HEAD")
		r.must(t, "check", released)
	}
}

// Tags that do not fit together are seen, whoever made them.
func TestReleaseCheckSeesWrongTags(t *testing.T) {
	t.Parallel()
	tagged := prepared(t)
	tagged.must(t, "tag", released)
	for name, c := range map[string]struct {
		change func(*testing.T, repository)
		says   string
	}{
		"a missing tag": {func(t *testing.T, r repository) {
			t.Helper()
			r.git(t, "tag", "-d", "relay/v0.1.0")
		}, "there is no tag relay/v0.1.0"},
		"a tag elsewhere": {func(t *testing.T, r repository) {
			t.Helper()
			r.git(t, "tag", "-f", "relay/v0.1.0", "HEAD")
		}, "relay/v0.1.0 is at another commit"},
		"no minor version": {func(t *testing.T, r repository) {
			t.Helper()
			r.git(t, "checkout", "--quiet", released)
			for _, name := range []string{"internal/oneversion/oneversion.go", "relay/relay.go"} {
				r.replace(t, name, constant+"0_1", "Another")
			}
			for _, tag := range allTags {
				r.git(t, "tag", "-f", tag, "HEAD")
			}
		}, "the Go files name no minor version"},
		"all at the branch": {func(t *testing.T, r repository) {
			t.Helper()
			for _, tag := range allTags {
				r.git(t, "tag", "-f", tag, "HEAD")
			}
		}, "cmd/go.mod requires relay at v0.0.0 and not at v0.1.0"},
		"a sum": {amended(func(t *testing.T, r repository) {
			t.Helper()
			r.replace(t, "cmd/go.sum", " h1:", " h1:A")
		}), "cmd/go.sum has other sums"},
		"a sum of the tests": {amended(func(t *testing.T, r repository) {
			t.Helper()
			r.replace(t, "test/go.sum", " h1:", " h1:A")
		}), "test/go.sum has other sums"},
		"a file that no branch has": {amended(func(t *testing.T, r repository) {
			t.Helper()
			r.write(t, "relay/unseen.go", "package relay\n")
			r.commit(t)
		}), "v0.1.0 changes more of relay/unseen.go than"},
		"another requirement": {amended(func(t *testing.T, r repository) {
			t.Helper()
			r.replace(t, "relay/go.mod", "require ", "require example.org/unseen v1.0.0\n\nrequire ")
		}), "v0.1.0 changes more of relay/go.mod than"},
		"another sum of others": {amended(func(t *testing.T, r repository) {
			t.Helper()
			r.replace(t, "relay/go.sum", "example.com/", "example.org/unseen v1.0.0 h1:A=\nexample.com/")
		}), "v0.1.0 changes more of relay/go.sum than"},
		"a commit that no branch has": {func(t *testing.T, r repository) {
			t.Helper()
			r.git(t, "checkout", "--quiet", "--detach")
			r.write(t, "unseen.go", "package small\n")
			r.commit(t)
			for _, tag := range allTags {
				r.git(t, "tag", "-d", tag)
			}
			r.must(t, "tag", released)
		}, "v0.1.0 was made of a commit that is in no branch refs/heads/main or"},
		"a branch that is not pushed": {func(t *testing.T, r repository) {
			t.Helper()
			r.git(t, "remote", "add", "origin", r.folder)
			r.git(t, "update-ref", "refs/remotes/origin/main", "HEAD^")
		}, "v0.1.0 was made of a commit that is in no branch refs/remotes/origin/main or"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := tagged.again(t)
			c.change(t, r)
			if code, said := r.release(t, "check", released); code != 1 || !strings.Contains(said, c.says) {
				t.Errorf("exit code %d, want 1 and %q\n%s", code, c.says, said)
			}
		})
	}
}
