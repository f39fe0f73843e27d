package retention_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/process"
)

// A pruner is the built outboxctl, as the janitor's role.
type pruner struct {
	*env
	binary string
}

// TestPrune is `outboxctl prune` as cron runs it: the program itself, by a role that may do no more
// than a janitor.
func TestPrune(t *testing.T) {
	t.Parallel()
	binary, err := process.Built(t.Context(), "cmd/outboxctl")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]func(*testing.T, *pruner){
		"removes what is due and nothing else": pruneRemovesWhatIsDue,
		"two at once hurt nobody":              pruneTwoAtOnce,
		"a refused role is told what to do":    pruneForbiddenRole,
		"more than time explains is refused":   pruneRejects,
		"stopped in the middle":                pruneStopped,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, s *env) { test(t, &pruner{env: s, binary: binary}) })
		})
	}
}

// command is one call; it has a while, so that nothing hangs forever.
func (p *pruner) command(t *testing.T, args ...string) (_ *exec.Cmd, stdout, stderr *bytes.Buffer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	run := exec.CommandContext(ctx, p.binary, append([]string{"prune", "--schema", p.Schema}, args...)...)
	run.Env = []string{"DATABASE_URL=" + pgtest.As(t, p.URL, p.role)}
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	run.Stdout, run.Stderr = stdout, stderr
	return run, stdout, stderr
}

// run calls it and wants an exit code.
func (p *pruner) run(t *testing.T, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	run, out, said := p.command(t, args...)
	var exit *exec.ExitError
	if err := run.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if code := run.ProcessState.ExitCode(); code != want {
		t.Errorf("%q: exit code %d, want %d\n%s%s", args, code, want, out, said)
	}
	return out.String(), said.String()
}

// wantLast compares the last line, an expression.
func wantLast(t *testing.T, text, want string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if last := lines[len(lines)-1]; !regexp.MustCompile(`\A` + want + `\z`).MatchString(last) {
		t.Errorf("the last line is\n%s\nwant\n%s", last, want)
	}
}

func pruneRemovesWhatIsDue(t *testing.T, p *pruner) {
	stay, gone := map[string]string{}, map[string]string{}
	for state := ready; state <= discarded; state++ {
		stay[fmt.Sprint("young ", state)] = p.event(t, state, 29*day)
		old := p.event(t, state, 31*day)
		p.key(t, fmt.Sprint("key ", state), old, 31*day)
		if state == published || state == discarded {
			gone[fmt.Sprint("old ", state)] = old
		} else {
			stay[fmt.Sprint("old ", state)] = old
		}
	}
	p.act(t, "redrive", stay["young 6"], p.letter(t, 100*day), 91*day)
	open := p.letter(t, 300*day)
	p.events(t, 250, 40*day)

	text, said := p.run(t, 0, "--dry-run")
	wantLast(t, text, `prune published=251 discarded=1 dead=1 dedupe=8 dry_run=true halted=none seconds=[\d.]+ ok=true`)
	if !regexp.MustCompile(`(?m)^published: at most 251 rows, older than 2\S+Z$`).MatchString(text) || said != "" {
		t.Errorf("a dry run says\n%s%s", text, said)
	}
	p.wantThere(t, "outbox_events", "id", gone, true)

	text, said = p.run(t, 0, "--batch", "100", "--pause", "0s", "--progress", "1ns")
	wantLast(t, text, `prune published=251 discarded=1 dead=1 dedupe=2 batches=5 slowest_ms=[\d.]+ rate=\d+ busy=none `+
		`halted=none seconds=[\d.]+ ok=true`)
	progress := regexp.MustCompile(`(?m)^prune: (\d+) of at most 261 rows are gone, \d+ rows/s, at most \S+ left$`)
	if told := progress.FindAllStringSubmatch(text, -1); len(told) != 5 || told[0][1] != "86" || told[4][1] != "255" ||
		said != "" {
		t.Errorf("it says\n%s%s", text, said)
	}
	p.wantThere(t, "outbox_events", "id", stay, true)
	p.wantThere(t, "outbox_events", "id", gone, false)
	p.wantThere(t, "outbox_dlq", "id", map[string]string{"unresolved": open}, true)
	if n := p.Count(t,
		"SELECT count(*) FROM {schema}.outbox_dedupe k JOIN {schema}.outbox_events e ON e.id = k.event_id"); n != 6 {
		t.Errorf("%d keys are left of events that are there", n)
	}

	text, _ = p.run(t, 0)
	wantLast(t, text, `prune published=0 discarded=0 dead=0 dedupe=0 batches=0 slowest_ms=0.0 rate=0 busy=none `+
		`halted=none seconds=[\d.]+ ok=true`)
	if strings.Count(text, "\n") != 1 {
		t.Errorf("with nothing to do it says\n%s", text)
	}
}

// Two of them, and retention as a publisher has it.
func pruneTwoAtOnce(t *testing.T, p *pruner) {
	const rows = 4_000
	p.events(t, rows, 31*day)
	p.event(t, published, day)
	var outs []*bytes.Buffer
	var commands []interface{ Wait() error }
	for range 2 {
		run, out, said := p.command(t, "--batch", "100", "--pause", "1ms")
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = run.Process.Kill() })
		commands, outs = append(commands, run), append(outs, out, said)
	}
	result, err := p.retention(t, hundreds).Once(t.Context())
	if err != nil {
		t.Error(err)
	}
	deleted := int(result.Published)
	for _, command := range commands {
		if err := command.Wait(); err != nil {
			t.Errorf("%v\n%s", err, outs)
		}
	}
	for _, out := range outs {
		for _, match := range regexp.MustCompile(`(?m)^prune published=(\d+) .*ok=true$`).FindAllStringSubmatch(out.String(),
			-1) {
			n, err := strconv.Atoi(match[1])
			if err != nil {
				t.Fatal(err)
			}
			deleted += n
		}
	}
	if deleted != rows || p.Count(t, "SELECT deleted FROM {schema}.outbox_retention WHERE kind = 'published'") != rows {
		t.Errorf("%d of %d rows are counted as deleted\n%s", deleted, rows, outs)
	}
	if n := p.Count(t, "SELECT count(*) FROM {schema}.outbox_events"); n != 1 {
		t.Errorf("%d rows are left", n)
	}
	// Somebody is at it: that is no failure.
	p.Exec(t, "UPDATE {schema}.outbox_retention SET worker = gen_random_uuid(), work_until = now() + interval '1 minute'")
	text, _ := p.run(t, 0)
	wantLast(t, text, `prune published=0 .* busy=published,dead,dedupe halted=none seconds=[\d.]+ ok=true`)
}

func pruneForbiddenRole(t *testing.T, p *pruner) {
	p.event(t, published, 31*day)
	p.role = pgtest.NewRole(t, p.Server, "janitor")
	p.Exec(t, "SELECT {schema}.outbox_grant('relay', $1)", p.role)
	p.Exec(t, "SELECT {schema}.outbox_grant('operator', $1)", p.role)
	for _, args := range [][]string{nil, {"--dry-run"}} {
		text, said := p.run(t, 4, args...)
		wantLast(t, text, `prune .*ok=false`)
		if !strings.Contains(said, "permission denied for table") ||
			!strings.Contains(said, "run `outboxctl grant janitor <role>`") {
			t.Errorf("%v: it says\n%s", args, said)
		}
	}
	if n := p.Count(t, "SELECT count(*) FROM {schema}.outbox_events"); n != 1 {
		t.Errorf("%d rows are left", n)
	}
	// And where there is no outbox.
	want := "run 'outboxctl migrate up --schema nowhere'"
	if _, said := p.run(t, 1, "--schema", "nowhere"); !strings.Contains(said, want) {
		t.Errorf("it says\n%s", said)
	}
}

func pruneRejects(t *testing.T, p *pruner) {
	p.event(t, published, 31*day)
	p.Exec(t, "UPDATE {schema}.outbox_retention SET cut_off = now() - interval '60 days', ran_at = now() - interval '30 "+
		"days' WHERE kind = 'published'")
	for _, args := range [][]string{{"--dry-run"}, nil} {
		text, said := p.run(t, 1, args...)
		wantLast(t, text, `prune .*halted=published\S* seconds=[\d.]+ ok=false`)
		if !strings.Contains(said, "nothing of published is deleted: the cut-off would move by 7") {
			t.Errorf("%v: it says\n%s", args, said)
		}
	}
	_, said := p.run(t, 1)
	confirm := regexp.MustCompile(`pass (--confirmed) (2\S+Z)`).FindStringSubmatch(said)
	if confirm == nil {
		t.Fatalf("it says\n%s", said)
	}
	text, _ := p.run(t, 0, confirm[1:]...)
	wantLast(t, text, `prune published=1 .*halted=none seconds=[\d.]+ ok=true`)
	// Once per month is often enough where it is said.
	p.Exec(t,
		"UPDATE {schema}.outbox_retention SET cut_off = cut_off - interval '31 days', ran_at = ran_at - interval '31 days'")
	p.event(t, published, 31*day)
	text, _ = p.run(t, 0, "--every", "744h")
	wantLast(t, text, `prune published=1 .* ok=true`)
}

// What was deleted stays so, and whoever comes next need not wait until the work counts as abandoned.
func pruneStopped(t *testing.T, p *pruner) {
	p.events(t, 5_000, 31*day)
	run, out, said := p.command(t, "--batch", "100", "--pause", "500ms")
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = run.Process.Kill() })
	// The second has begun when the first was counted: it could be stopped before it has heard of its own.
	eventually.True(t, "the second batch", func() bool {
		return p.Count(t, "SELECT count(*) FROM {schema}.outbox_events") <= 4_800
	})
	if err := run.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = run.Wait() // its exit code says how it ended
	if code := run.ProcessState.ExitCode(); code != 130 ||
		!strings.Contains(said.String(), "it was stopped; what was deleted stays so") {
		t.Errorf("exit code %d\n%s%s", code, out, said)
	}
	wantLast(t, out.String(), `prune published=\d+00 .*ok=false`)
	left := p.Count(t, "SELECT count(*) FROM {schema}.outbox_events")
	text, _ := p.run(t, 0, "--pause", "0s")
	wantLast(t, text, fmt.Sprintf(`prune published=%d .*busy=none .*ok=true`, left))
}
