package deploy

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
)

// version is what the image is built with.
const version = "v1.2.3-deploy"

// scratch is where the image is built, for the run of all tests.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "posthaste-deploy-"); err != nil {
		panic(err)
	}
	code := goroutines.Run(m, goroutines.Linked)
	_ = os.RemoveAll(scratch)
	os.Exit(code)
}

// built makes the image, once.
var built = sync.OnceValue(func() error { return build(scratch) })

// image is the root of the container, as the Dockerfile makes it, and with the examples where compose.yaml mounts them.
func image(t *testing.T) string {
	t.Helper()
	if err := built(); err != nil {
		t.Fatalf("build the image: %v", err)
	}
	return filepath.Join(scratch, "root")
}

// build does what the Dockerfile says, in a copy of the tree that has what .dockerignore lets through.
func build(folder string) error {
	source, out, image := filepath.Join(folder, "src"), filepath.Join(folder, "out"), filepath.Join(folder, "root")
	if err := copyContext(source); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		return err
	}
	all := stages(string(text))
	for _, line := range all["build"].of("RUN") {
		run := exec.Command("sh", "-c", strings.ReplaceAll(line, "/out/", out+"/"))
		run.Dir, run.Env = source, append(os.Environ(), "VERSION="+version, "GOFLAGS=", "GOWORK=")
		if output, err := run.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", line, err, output)
		}
	}
	for _, line := range all["publisher"].of("COPY") {
		words := strings.Fields(strings.TrimPrefix(line, "--from=build "))
		target := filepath.Join(image, words[len(words)-1])
		for _, from := range words[:len(words)-1] {
			if own, ours := strings.CutPrefix(from, "/out/"); ours {
				from = filepath.Join(out, own)
			}
			if err := copyFile(from, filepath.Join(target, filepath.Base(from))); err != nil {
				return err
			}
		}
	}
	if err := os.CopyFS(filepath.Join(image, "etc", "posthaste"), os.DirFS(filepath.Join(root, "examples"))); err != nil {
		return err
	}
	return os.Chmod(image, 0o755)
}

// copyContext copies the files that git knows or would know, without those that .dockerignore names.
func copyContext(target string) error {
	patterns, err := os.ReadFile(filepath.Join(root, ".dockerignore"))
	if err != nil {
		return err
	}
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	output, err := list.Output()
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.Trim(string(output), "\x00"), "\x00") {
		if ignored(string(patterns), name) {
			continue
		}
		if err := copyFile(filepath.Join(root, name), filepath.Join(target, name)); err != nil &&
			!errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// ignored tells whether a .dockerignore leaves a file out. It knows the two forms that ours has.
func ignored(patterns, name string) bool {
	parts := strings.Split(name, "/")
	for pattern := range strings.Lines(patterns) {
		pattern = strings.TrimSpace(pattern)
		if anywhere, found := strings.CutPrefix(pattern, "**/"); found {
			if slices.Contains(parts, anywhere) {
				return true
			}
		} else if match, _ := path.Match(pattern, parts[0]); match && pattern != "" && !strings.HasPrefix(pattern, "#") {
			return true
		}
	}
	return false
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	about, err := source.Stat()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, about.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

// program is one of the image's, on this machine.
func program(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(image(t), "usr", "local", "bin", name)
}

func TestTheProgramsAreStatic(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"outbox-publisher", "outboxctl"} {
		file, err := elf.Open(program(t, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := static(file.Progs); err != nil {
			t.Errorf("%s %v", name, err)
		}
		_ = file.Close()
	}
	if static([]*elf.Prog{{ProgHeader: elf.ProgHeader{Type: elf.PT_INTERP}}}) == nil {
		t.Error("a program with a loader counts as static")
	}
}

// static says why a program does not run on an empty image.
func static(segments []*elf.Prog) error {
	for _, segment := range segments {
		if segment.Type == elf.PT_INTERP || segment.Type == elf.PT_DYNAMIC {
			return fmt.Errorf("has a segment %s: it needs libraries that the image has not", segment.Type)
		}
	}
	return nil
}

func TestTheImageHasNothingElse(t *testing.T) {
	t.Parallel()
	var found []string
	folder := image(t)
	err := filepath.WalkDir(folder, func(name string, entry os.DirEntry, err error) error {
		relative, _ := filepath.Rel(folder, name)
		if !entry.IsDir() && !strings.HasPrefix(relative, "etc/posthaste/") {
			found = append(found, relative)
		}
		return err
	})
	want := []string{
		"etc/passwd", "etc/ssl/certs/ca-certificates.crt", "usr/local/bin/outbox-publisher", "usr/local/bin/outboxctl",
		"usr/share/doc/posthaste/LICENSE", "usr/share/doc/posthaste/THIRD-PARTY-NOTICES",
	}
	if err != nil || !slices.Equal(found, want) {
		t.Errorf("the image has %v, want %v (%v)", found, want, err)
	}
}

// inContainer is a command of the image as a container would run it: its root is the image and cannot be written, its
// user is nobody, and its environment is the image's and what is given.
func inContainer(ctx context.Context, t *testing.T, environment map[string]string, command ...string) *exec.Cmd {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can make another root folder")
	}
	all := stages(read(t, "Dockerfile"))["publisher"]
	user := strings.Join(all.of("USER"), "")
	script := `mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec chroot --userspec=` + user + ` "$0" "$@"`
	args := append([]string{"--mount", "--propagation", "private", "sh", "-c", script, image(t)}, command...)
	run := exec.CommandContext(ctx, "unshare", args...)
	merged := all.environment()
	maps.Copy(merged, environment)
	// The shell needs a PATH before the new root has one; the image's is the last of it.
	merged["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin:" + merged["PATH"]
	for name, value := range merged {
		run.Env = append(run.Env, name+"="+value)
	}
	return run
}

func TestTheVersionIsTheBuilds(t *testing.T) {
	t.Parallel()
	output, err := inContainer(t.Context(), t, nil, "outbox-publisher", "version").CombinedOutput()
	if err != nil || strings.TrimSpace(string(output)) != "outbox-publisher "+version {
		t.Errorf("%v: %s", err, output)
	}
}
