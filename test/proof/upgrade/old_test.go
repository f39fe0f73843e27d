package upgrade_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/test/proof/upgrade"
)

// history is a repository of a test.
type history struct {
	t    *testing.T
	root string
}

func (h history) git(args ...string) string {
	h.t.Helper()
	run := exec.Command("git", append([]string{
		"-C", h.root, "-c", "user.name=t", "-c", "user.email=t@example.com", "-c",
		"commit.gpgsign=false", "-c", "tag.gpgsign=false",
	}, args...)...)
	text, err := run.CombinedOutput()
	if err != nil {
		h.t.Fatalf("git %v: %v: %s", args, err, text)
	}
	return strings.TrimSpace(string(text))
}

// write writes a migration.
func (h history) write(file, text string) {
	h.t.Helper()
	folder := filepath.Join(h.root, "schema", "outbox")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// commit commits all there is, and returns the commit.
func (h history) commit() string {
	h.t.Helper()
	h.git("add", "--all")
	h.git("commit", "--quiet", "--allow-empty", "--message", "m")
	return h.git("rev-parse", "HEAD")
}

func newHistory(t *testing.T) history {
	t.Helper()
	h := history{t, t.TempDir()}
	h.git("init", "--quiet", "--initial-branch", "main")
	return h
}

// find checks what is found, and why.
func (h history) find(name, commit, why string, released bool) {
	h.t.Helper()
	old, err := upgrade.FindOld(h.t.Context(), h.root, name)
	if err != nil || old != (upgrade.Old{Commit: commit, Why: why, Released: released}) {
		h.t.Errorf("want %s, %s; it is %+v, %v", commit, why, old, err)
	}
	if err == nil && old.Short() != commit[:12] {
		h.t.Errorf("the short name is %s", old.Short())
	}
}

// fails checks why nothing is found.
func (h history) fails(name, want string) {
	h.t.Helper()
	if old, err := upgrade.FindOld(h.t.Context(), h.root, name); err == nil || !strings.Contains(err.Error(), want) {
		h.t.Errorf("want %q; it is %+v, %v", want, old, err)
	}
}

func TestFindOld(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.fails("", "this checkout has no commit")
	h.commit()
	h.fails("", "there is no migration in")
	h.write("00001_a.sql", "a")
	h.commit()
	before := h.commit()
	h.write("00002_b.sql", "b")
	second := h.commit()
	h.write("00001_a.sql", "changed") // which adds nothing
	third := h.commit()
	h.find("", before, "before 00002_b", false)
	h.find(second, second, second+" was named", false)
	h.fails("nobody", `no commit "nobody"`)
	h.write("00003_c.sql", "c")
	h.find("", third, "00003_c is not committed yet", false)
	h.git("tag", "relay/v0.1.0", before) // of a module
	h.git("tag", "very-old", before)
	h.find("", third, "00003_c is not committed yet", false)
	h.git("tag", "v0.1.0", second)
	h.find("", second, "v0.1.0 is the last release", true)
	h.git("tag", "v0.2.0", third) // a release is compared with the one before it
	h.find("", second, "v0.1.0 is the last release", true)
	h.commit()
	h.find("", third, "v0.2.0 is the last release", true)
	h.find("v0.1.0", second, "v0.1.0 was named", true)
}

// TestAReleaseBesideTheBranchIsFound: its tag is at a commit that the branch goes on without.
func TestAReleaseBesideTheBranchIsFound(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.write("00001_a.sql", "a")
	first := h.commit()
	// Commits of the same second differ by their messages alone.
	commit := func(message string) string {
		t.Helper()
		h.git("commit", "--quiet", "--allow-empty", "--message", message)
		return h.git("rev-parse", "HEAD")
	}
	beside := func(tag, from string) string {
		t.Helper()
		h.git("checkout", "--quiet", "--detach", from)
		released := commit(tag)
		h.git("tag", "--annotate", "--message", tag, tag)
		h.git("checkout", "--quiet", "main")
		return released
	}
	one := beside("v0.1.0", first)
	h.fails("", "the first commit brought it") // as it is what was released
	second := commit("second")
	h.find("", one, "v0.1.0 is the last release", true)
	two := beside("v0.10.0", second)
	h.find("", one, "v0.1.0 is the last release", true)
	h.git("checkout", "--quiet", "v0.10.0")
	h.find("", one, "v0.1.0 is the last release", true)
	h.git("checkout", "--quiet", "main")
	third := commit("third")
	h.find("", two, "v0.10.0 is the last release", true)
	// A patch of the older line is none of this history.
	h.git("checkout", "--quiet", "-b", "release-0.1", second)
	patched := commit("patched")
	h.git("checkout", "--quiet", "main")
	patch := beside("v0.9.1", patched)
	h.find("", two, "v0.10.0 is the last release", true)
	h.git("checkout", "--quiet", "release-0.1")
	commit("more patches")
	h.find("", two, "v0.10.0 is the last release", true)
	h.git("tag", "--delete", "v0.10.0")
	h.find("", patch, "v0.9.1 is the last release", true)
	h.git("checkout", "--quiet", third)
	h.find("", one, "v0.1.0 is the last release", true)
}

func TestFindOldWithoutAHistory(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.write("00001_a.sql", "a")
	h.commit()
	h.fails("", "the first commit brought it, or name one with OLD=")
	h.write("00002_b.sql", "b")
	h.commit()
	shallow := history{t, filepath.Join(t.TempDir(), "clone")}
	h.git("clone", "--quiet", "--depth", "1", "file://"+h.root, shallow.root)
	shallow.fails("", "this checkout is shallow: bring the history with `git fetch --unshallow --tags`")
	history{t, t.TempDir()}.fails("", "this is no checkout of git")
}

func TestCompare(t *testing.T) {
	t.Parallel()
	before, now := history{t, t.TempDir()}, history{t, t.TempDir()}
	compare := func(want upgrade.Migrations, kept bool) {
		t.Helper()
		found, err := upgrade.Compare(before.root, now.root, "outbox")
		if err != nil || found.Old != want.Old || found.New != want.New || found.Shared != want.Shared ||
			strings.Join(found.Changed, " ") != strings.Join(want.Changed, " ") ||
			strings.Join(found.Gone, " ") != strings.Join(want.Gone, " ") || found.Kept() != kept {
			t.Errorf("want %+v, found %+v, %v", want, found, err)
		}
	}
	if _, err := upgrade.Compare(before.root, now.root, "outbox"); err == nil {
		t.Error("there is none")
	}
	before.write("00001_a.sql", "a")
	if _, err := upgrade.Compare(before.root, now.root, "outbox"); err == nil {
		t.Error("there is none in the new tree")
	}
	now.write("00001_a.sql", "a")
	now.write("00002_b.sql", "b")
	compare(upgrade.Migrations{Old: 1, New: 2, Shared: 1}, true)
	before.write("00002_b.sql", "other")
	compare(upgrade.Migrations{Old: 2, New: 2, Shared: 2, Changed: []string{"00002_b"}}, false)
	before.write("00003_access.sql", "c")
	now.write("00003_c.sql", "c")
	now.write("00004_access.sql", "c")
	compare(upgrade.Migrations{Old: 3, New: 4, Shared: 2, Changed: []string{"00002_b"}, Gone: []string{"00003_access"}},
		false)
	before.write("00001_z.sql", "a")
	if err := os.Remove(filepath.Join(before.root, "schema", "outbox", "00001_a.sql")); err != nil {
		t.Fatal(err)
	}
	if _, err := upgrade.Compare(before.root, now.root, "outbox"); err == nil {
		t.Error("they have nothing in common")
	}
	before.write("zzz.sql", "a")
	if _, err := upgrade.Compare(before.root, now.root, "outbox"); err == nil {
		t.Error("a migration without a number")
	}
}
