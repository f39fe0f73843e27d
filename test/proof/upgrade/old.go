package upgrade

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Old is the commit whose programs are the old ones.
type Old struct {
	Commit string // all of its digits
	Why    string // why it is that one, for people
	// Released: it has a version's tag, so its migrations may not have changed since.
	Released bool
}

// Short is how people name the commit.
func (o Old) Short() string { return o.Commit[:min(len(o.Commit), 12)] }

const migrationsFolder = "schema/outbox"

// FindOld finds the commit of that name in a checkout. Without a name it is the last tag of a version, or, where there
// is none yet, the commit before the newest migration of the outbox.
func FindOld(ctx context.Context, root, name string) (Old, error) {
	g := repository(root)
	if _, err := g.query(ctx, "rev-parse", "--is-inside-work-tree"); err != nil {
		return Old{}, fmt.Errorf("upgrade: the old commit comes from the history, and this is no checkout of git: %w", err)
	}
	old, err := g.find(ctx, name)
	if err != nil {
		return Old{}, err
	}
	tags, err := g.query(ctx, "tag", "--points-at", old.Commit, "--list", versionTags)
	old.Released = tags != ""
	return old, err
}

// versionTags are the tags of the root module; those of other modules have a folder in front.
const versionTags = "v[0-9]*"

// repository is the root of a checkout, about which git is asked.
type repository string

func (g repository) query(ctx context.Context, args ...string) (string, error) {
	run := exec.CommandContext(ctx, "git", append([]string{"-C", string(g)}, args...)...)
	text, err := run.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(string(exit.Stderr)))
	}
	return strings.TrimSpace(string(text)), err
}

func (g repository) find(ctx context.Context, name string) (Old, error) {
	if name != "" {
		commit, err := g.query(ctx, "rev-parse", "--verify", "--end-of-options", name+"^{commit}")
		if err != nil {
			return Old{}, fmt.Errorf("upgrade: this checkout has no commit %q; git fetch may bring it: %w", name, err)
		}
		return Old{Commit: commit, Why: name + " was named"}, nil
	}
	head, err := g.query(ctx, "rev-parse", "--verify", "HEAD")
	if err != nil {
		return Old{}, fmt.Errorf("upgrade: this checkout has no commit: %w", err)
	}
	tags, err := g.query(ctx, "tag", "--list", versionTags, "--sort=-version:refname")
	if err != nil {
		return Old{}, fmt.Errorf("upgrade: %w", err)
	}
	for tag := range strings.FieldsSeq(tags) {
		commit, err := g.query(ctx, "rev-parse", "--verify", tag+"^{commit}")
		if err == nil && g.released(ctx, commit, head) {
			return Old{Commit: commit, Why: tag + " is the last release"}, nil
		}
	}
	return g.beforeNewest(ctx, head)
}

// released tells whether a commit with a version's tag is a release of the history that ends with head. A release lies
// beside its branch (docs/internals/releasing.md), so what counts is the commit that it was made of. One of head itself
// is not meant: a release is compared with the one before it.
func (g repository) released(ctx context.Context, commit, head string) bool {
	from, err := g.query(ctx, "rev-parse", "--verify", commit+"^")
	if err != nil {
		from = commit // the first commit of all
	}
	if commit == head || from == head {
		return false
	}
	_, err = g.query(ctx, "merge-base", "--is-ancestor", from, head)
	return err == nil
}

// beforeNewest is the commit before the newest migration came.
func (g repository) beforeNewest(ctx context.Context, head string) (Old, error) {
	files, err := filepath.Glob(filepath.Join(string(g), migrationsFolder, "*.sql"))
	if err != nil || len(files) == 0 {
		return Old{}, fmt.Errorf("upgrade: there is no migration in %s", filepath.Join(string(g), migrationsFolder))
	}
	newest := filepath.Base(slices.Max(files))
	title := strings.TrimSuffix(newest, ".sql")
	added, err := g.query(ctx, "log", "--no-renames", "--diff-filter=A", "--format=%H", "-n", "1", "--",
		migrationsFolder+"/"+newest)
	switch {
	case err != nil:
		return Old{}, fmt.Errorf("upgrade: %w", err)
	case added == "":
		return Old{Commit: head, Why: title + " is not committed yet"}, nil
	}
	commit, err := g.query(ctx, "rev-parse", "--verify", added+"^")
	if err != nil {
		reason := "the first commit brought it"
		if shallow, _ := g.query(ctx, "rev-parse", "--is-shallow-repository"); shallow == "true" {
			reason = "this checkout is shallow: bring the history with `git fetch --unshallow --tags`"
		}
		return Old{}, fmt.Errorf("upgrade: there is no commit before the migration %s: %s, or name one with OLD=", title,
			reason)
	}
	return Old{Commit: commit, Why: "before " + title}, nil
}
