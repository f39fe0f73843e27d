package redisinbox

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/posthaste-dev/posthaste/inbox/redisinbox"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

const victimVariable = "POSTHASTE_REDISINBOX_VICTIM"

// A victim is a consumer in a process of its own, which handles one event and dies at a point or is made to stand
// still.
type victim struct {
	hook
	Address, Prefix string
	ID              outbox.ID
	Hold            time.Duration
	OneCall         bool   // CheckAndMarkProcessed
	Point           string // where it dies; "wait" waits in the handler for a line on stdin
}

// The points at which a consumer dies.
const (
	beforeCheck  = "before the check"
	afterCheck   = "after the check"
	beforeEffect = "before the effect"
	afterEffect  = "after the effect"
	beforeMark   = "before the mark"
	afterMark    = "after the mark, before the acknowledgement"
	waits        = "wait"
)

// at dies if this is the point.
func (v victim) at(point string) {
	if v.Point == point {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until it comes
	}
}

func (v victim) effects() string { return v.Prefix + ":effects:" + v.ID.String() }

// ProcessHook makes the victim die between the lines of the guard: where a mark is about to be set, and where it is.
func (v victim) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		before, after := "", ""
		for _, arg := range cmd.Args() {
			text, _ := arg.(string)
			switch {
			case strings.HasPrefix(text, "done:"):
				before, after = beforeMark, afterMark
			case strings.HasPrefix(text, "held:") && before == "", strings.HasPrefix(text, "marked:"):
				before, after = beforeCheck, afterCheck
			}
		}
		v.at(before)
		err := next(ctx, cmd)
		if err == nil {
			v.at(after)
		}
		return err
	}
}

// live is the life of a victim.
func live(text string) int {
	var v victim
	err := json.Unmarshal([]byte(text), &v)
	if err == nil {
		err = v.consume(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 1
}

func (v victim) consume(ctx context.Context) error {
	plain := redis.NewClient(options(v.Address))
	client := redis.NewClient(options(v.Address))
	client.AddHook(v)
	guard, err := redisinbox.New(client, redisinbox.Config{Prefix: v.Prefix, Hold: v.Hold, Keep: 10 * time.Minute})
	if err != nil {
		return err
	}
	handler := func(ctx context.Context) error {
		v.at(beforeEffect)
		if v.Point == waits {
			fmt.Println("entered") //nolint:forbidigo // for the parent
			if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
				return err
			}
		}
		if err := plain.Incr(ctx, v.effects()).Err(); err != nil {
			return err
		}
		v.at(afterEffect)
		return nil
	}
	if !v.OneCall {
		// The handler ignores the end of its context.
		_, err := guard.Do(ctx, consumer, v.ID, func(context.Context) error { return handler(context.Background()) })
		fmt.Printf("%T %v\n", err, redisinbox.Handled(err)) //nolint:forbidigo // for the parent
		return err
	}
	already, err := guard.CheckAndMarkProcessed(ctx, consumer, v.ID, time.Minute)
	if err != nil || already {
		return fmt.Errorf("already=%v: %w", already, err)
	}
	if err := handler(ctx); err != nil {
		return err
	}
	v.at(afterMark)
	return nil
}

// command is the victim's process.
func (v victim) command(t *testing.T) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	// One that hangs is killed, which ends its output, too.
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	t.Cleanup(cancel)
	command := exec.CommandContext(ctx, os.Args[0], "-test.run=^$")
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGQUIT) } // it says where it stands
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}           // also if the test's process dies
	command.Env = append(os.Environ(), victimVariable+"="+string(text))
	return command
}

// lapse ends the hold that a victim has left, if it has left one, and wants that it would have ended by itself.
func (s env) lapse(t *testing.T) {
	t.Helper()
	if strings.HasPrefix(s.mark(t), "held:") {
		left, err := s.client.PTTL(t.Context(), s.key).Result()
		if err != nil {
			t.Fatal(err)
		}
		if left <= 0 || left > long.Hold {
			t.Errorf("%s are left of the hold, want no more than %s", left, long.Hold)
		}
	}
	if err := lapseHeld.Run(t.Context(), s.client, []string{s.key}).Err(); err != nil {
		t.Fatal(err)
	}
}

// die lets the victim live until it kills itself.
func (v victim) die(t *testing.T) {
	t.Helper()
	command := v.command(t)
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	err := command.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the consumer did not die of SIGKILL: %v\n%s", err, said.String())
	}
}

func newVictim(s env, point string) victim {
	prefix, _, _ := strings.Cut(s.key, ":")
	return victim{Address: services.Redis(), Prefix: prefix, ID: s.id, Hold: long.Hold, Point: point}
}

// wantEffects counts how often the victim's effect has happened, in all lives.
func (v victim) wantEffects(t *testing.T, client *redis.Client, want int) {
	t.Helper()
	got, err := client.Get(t.Context(), v.effects()).Int()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("the effect happened %d times, want %d", got, want)
	}
	client.Del(t.Context(), v.effects())
}

// A consumer that dies anywhere loses no event (fault I1). The effect happens twice only if it dies between effect and
// mark (fault I2).
func TestKilledConsumersOfDo(t *testing.T) {
	t.Parallel()
	for point, effects := range map[string]int{
		beforeCheck: 1, afterCheck: 1, beforeEffect: 1, afterEffect: 2, beforeMark: 2, afterMark: 1,
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := newEnv(t, long)
			v := newVictim(s, point)
			v.die(t)
			s.lapse(t)
			deliver(t, s.guard, s.id, func(ctx context.Context) error { return s.client.Incr(ctx, v.effects()).Err() })
			v.wantEffects(t, s.client, effects)
			s.wantMark(t, "done:")
		})
	}
}

// The one-call form loses the event of a consumer that dies between mark and effect: this shows that it does, and that
// nothing but its mark keeps the event from being handled (fault I1).
func TestKilledConsumersOfTheOneCallForm(t *testing.T) {
	t.Parallel()
	for point, effects := range map[string]int{
		beforeCheck: 1, afterCheck: 0, beforeEffect: 0, afterEffect: 1, afterMark: 1,
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := newEnv(t, long)
			v := newVictim(s, point)
			v.OneCall = true
			v.die(t)
			for range 3 { // copies
				already, err := s.checkAndMark(t, s.guard)
				if err != nil {
					t.Fatal(err)
				}
				if !already {
					s.client.Incr(t.Context(), v.effects())
				}
			}
			v.wantEffects(t, s.client, effects)
		})
	}
}

// A process that stands still for longer than its hold, and a second that handles the event meanwhile: the first is
// told when it wakes up, and removes nothing (fault I4).
func TestAProcessThatStandsStillLosesItsHold(t *testing.T) {
	t.Parallel()
	s := newEnv(t, long)
	v := newVictim(s, waits)
	command := v.command(t)
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	if !lines.Scan() || lines.Text() != "entered" {
		t.Fatalf("the consumer said %q", lines.Text())
	}
	if err := command.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.lapse(t)
	deliver(t, s.guard, s.id, func(ctx context.Context) error { return s.client.Incr(ctx, v.effects()).Err() })
	done := s.mark(t)
	if err := command.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if _, err := stdin.Write([]byte("go on\n")); err != nil {
		t.Fatal(err)
	}
	if !lines.Scan() || lines.Text() != "*redisinbox.LostError true" {
		t.Errorf("the consumer that stood still was told %q", lines.Text())
	}
	_ = command.Wait() // it ends with 1, as all victims do
	if got := s.mark(t); got != done || !strings.HasPrefix(got, "done:") {
		t.Errorf("the mark was %q and is %q", done, got)
	}
	v.wantEffects(t, s.client, 2)
}
