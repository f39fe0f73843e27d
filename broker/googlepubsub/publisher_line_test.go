package googlepubsub

import (
	"context"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"

	"github.com/posthaste-dev/posthaste/publish"
)

func failedLine(name string, failedAt time.Time) *line {
	return &line{name: name, key: name, failed: true, failedAt: failedAt, told: 5}
}

func TestAdmission(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, c := range []struct {
		what   string
		change func(*line)
		seq    int64
		knows  bool
		want   bool
	}{
		{"the failed one", func(*line) {}, 5, false, true},
		{"an older one, redriven", func(*line) {}, 2, false, true},
		{"a straggler", func(*line) {}, 6, false, false},
		{"one that knows", func(*line) {}, 6, true, true},
		{"one that comes too late for a straggler", func(l *line) { l.failedAt = now.Add(-stragglers - 1) }, 6, false, true},
		{"the failed one, before all behind it were told", func(l *line) { l.untold = 1 }, 5, false, false},
		{"any, with nothing wrong", func(l *line) { l.failed = false }, 6, false, true},
	} {
		l := failedLine("order/1", now)
		c.change(l)
		if got := l.admits(&handOver{message: &publish.Message{Seq: c.seq}, knows: c.knows}, now); got != c.want {
			t.Errorf("%s: admitted is %v", c.what, got)
		}
	}
}

// One that failed is handed over anew and refused, because a callback is still under way: its relay gave it up by its
// own clock. What was handed over right behind it must not pass it.
func TestNothingPassesOneThatIsRejected(t *testing.T) {
	t.Parallel()
	now := time.Now()
	first, behind := &handOver{message: &publish.Message{Seq: 4}}, &handOver{message: &publish.Message{Seq: 5}}
	l := failedLine("order/1", now)
	l.untold = 1
	if l.admits(first, now) {
		t.Fatal("the first is admitted while a callback is under way")
	}
	l.reject(first)
	l.untold = 0
	if l.admits(behind, now) {
		t.Fatal("the one behind it is admitted")
	}
	l.reject(behind)
	l.untold = 0
	if !l.admits(first, now) {
		t.Error("the first is not admitted, and nothing will ever be")
	}
}

// Keys that nobody hands over again would stay forever, here and in the library.
func TestForgottenKeysAreSwept(t *testing.T) {
	t.Parallel()
	now := time.Now()
	long := now.Add(-2 * stragglers)
	busy := failedLine("busy", long)
	busy.sent = []*handOver{{}}
	tp := &topic{library: (&pubsub.Client{}).Publisher("orders"), lines: map[string]*line{
		"long": failedLine("long", long), "just": failedLine("just", now), "busy": busy,
	}}
	tp.sweep(now)
	if len(tp.lines) != 2 || tp.lines["just"] == nil || tp.lines["busy"] == nil {
		t.Errorf("left: %v", tp.lines)
	}
	tp.lines["long"] = failedLine("long", long)
	tp.sweep(now)
	if len(tp.lines) != 3 {
		t.Error("swept again at once: every failure would look at every key")
	}
}

// What the library does not take is not sent: one that is stopped, and one that had no room in time.
func TestDeclined(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(t.Context())
	end()
	full := (&pubsub.Client{}).Publisher("orders")
	full.PublishSettings.FlowControlSettings.LimitExceededBehavior = pubsub.FlowControlBlock
	stopped := (&pubsub.Client{}).Publisher("orders")
	stopped.Stop()
	for what, result := range map[string]*pubsub.PublishResult{
		"no room": full.Publish(ended, &pubsub.Message{}), "stopped": stopped.Publish(ended, &pubsub.Message{}),
	} {
		if err := declined(ended, result); publish.ClassOf(err) != publish.NotSent {
			t.Errorf("%s: %v", what, err)
		}
	}
}
