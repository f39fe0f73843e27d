package mutants

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// atATime is how many proofs run beside each other. Most of them wait more than they work.
const atATime = 4

// hung is how long a proof may take before it counts as one that hangs. It is no measure of the mutant: proofs take
// seconds, and on a slow machine longer.
const hung = 5 * time.Minute

// Finding is what became of one mutant.
type Finding struct {
	Mutant string
	Proof  string
	// Missed says why it was not caught; empty: it was.
	Missed string
	Took   time.Duration
}

// runner runs the programs that were built.
type runner struct {
	root, folder string
	hung         time.Duration
	began        time.Time
	say          io.Writer
	mu           sync.Mutex // guards say
}

// Run runs each mutant, or the one that is named, and says which were caught. Its programs are built once, with all
// mutants.
func Run(ctx context.Context, only string, say io.Writer) (_ *Report, err error) {
	list := all()
	if only != "" {
		list = slices.DeleteFunc(list, func(m mutant) bool { return m.name != only })
		if len(list) == 0 {
			return nil, fmt.Errorf("mutants: no mutant is called %q", only)
		}
	}
	root, err := rootFolder(ctx)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "proof-mutants-")
	if err != nil {
		return nil, fmt.Errorf("mutants: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	r := &runner{root: root, folder: folder, hung: hung, began: time.Now(), say: say}
	if err := r.buildAll(ctx, list); err != nil {
		return nil, err
	}
	var group errgroup.Group
	group.SetLimit(atATime)
	clean := r.clean(ctx, &group, list)
	findings := r.runAll(ctx, &group, list)
	_ = group.Wait() // nobody returns an error
	report := &Report{Findings: findings, Took: time.Since(r.began), One: only != ""}
	report.addClean(clean)
	return report, ctx.Err()
}

// buildAll builds what the mutants' proofs need, with all mutants in it.
func (r *runner) buildAll(ctx context.Context, list []mutant) error {
	replaced, err := overlayOfAll(r.root, r.folder)
	if err != nil {
		return err
	}
	done := map[build]bool{}
	var group errgroup.Group
	group.SetLimit(2) // the linker works alone most of the time
	for _, m := range list {
		b := m.proof.build
		if done[b] {
			continue
		}
		done[b] = true
		args := []string{"build"}
		if b.test {
			args = []string{"test", "-c"}
		}
		// Nobody looks into them with a debugger: what that reads need not be linked.
		args = append(args, "-ldflags=-s -w", "-overlay", replaced, "-o", r.program(b), "./"+b.folder)
		group.Go(func() error { return goCommand(ctx, r.root, args...) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	r.sayf("%d programs are built", len(done))
	return nil
}

func (r *runner) program(b build) string {
	return filepath.Join(r.folder, strings.ReplaceAll(b.folder, "/", "_"))
}

// clean lets each proof run with no mutant chosen. When the group has ended, what it returned tells why not all of them
// pass.
func (r *runner) clean(ctx context.Context, group *errgroup.Group, list []mutant) map[string]string {
	results, same := map[string]string{}, map[string][]proof{} // those that differ only in what they say of a mutant
	var order []string
	for _, m := range list {
		if same[m.proof.String()] == nil {
			order = append(order, m.proof.String())
		}
		same[m.proof.String()] = append(same[m.proof.String()], m.proof)
	}
	var mu sync.Mutex
	for _, name := range order {
		group.Go(func() error {
			began := time.Now()
			o := r.run(ctx, &same[name][0], "")
			problem := ""
			for i := range same[name] {
				problem = cmp.Or(problem, same[name][i].passed(o))
			}
			if problem == "" {
				r.sayf("%6d ms  clean   %s", time.Since(began).Milliseconds(), name)
			} else {
				r.sayf("%6d ms  BROKEN  %s: %s\n%s", time.Since(began).Milliseconds(), name, problem, end(o.text))
			}
			mu.Lock()
			defer mu.Unlock()
			results[name] = problem
			return nil
		})
	}
	return results
}

// runAll runs the mutants. When the group has ended, what it returned tells what became of them.
func (r *runner) runAll(ctx context.Context, group *errgroup.Group, list []mutant) []Finding {
	findings := make([]Finding, len(list))
	for i, m := range list {
		group.Go(func() error {
			began := time.Now()
			o := r.run(ctx, &m.proof, variable+"="+m.name)
			findings[i] = Finding{Mutant: m.name, Proof: m.proof.String(), Missed: m.proof.caught(o), Took: time.Since(began)}
			if f := &findings[i]; f.Missed == "" {
				r.sayf("%6d ms  caught  %s by %s", f.Took.Milliseconds(), f.Mutant, f.Proof)
			} else {
				r.sayf("%6d ms  MISSED  %s by %s: %s\n%s", f.Took.Milliseconds(), f.Mutant, f.Proof, f.Missed, end(o.text))
			}
			return nil
		})
	}
	return findings
}

// run runs a proof as the mutant that a setting of the environment names; an empty one is none.
func (r *runner) run(ctx context.Context, p *proof, setting string) outcome {
	ctx, cancel := context.WithTimeout(ctx, r.hung)
	defer cancel()
	command := exec.CommandContext(ctx, r.program(p.build), p.args...)
	command.Dir = r.root
	if p.build.test {
		command.Dir = filepath.Join(r.root, p.build.folder)
	}
	command.Env = append(os.Environ(), variable+"=", setting)
	var text bytes.Buffer
	command.Stdout, command.Stderr = &text, &text
	command.WaitDelay = time.Second // whatever it has started may keep its output open
	o := outcome{exit: 0}
	if err := command.Run(); err != nil {
		o.exit = -1
		if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
			o.exit = ended.ExitCode() // -1 when it was killed
		} else {
			fmt.Fprintln(&text, err)
		}
	}
	o.text = text.String()
	return o
}

// end is the last of a text, for people.
func end(text string) string {
	const most = 3000
	if len(text) > most {
		text = "..." + text[len(text)-most:]
	}
	return text
}

func (r *runner) sayf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// An error here is of no consequence.
	_, _ = fmt.Fprintf(r.say, "proof-mutants: %5.1f s: %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
}
