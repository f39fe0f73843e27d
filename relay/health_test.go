package relay

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

func idle(t *testing.T, config Config) *Relay {
	t.Helper()
	config.Database, config.Registry, config.Publisher = "postgres://relay@127.0.0.1:1/nobody", &outbox.Registry{}, quiet
	r, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The loop runs while the database is away: only one that is stuck stands still.
func TestLastTick(t *testing.T) {
	t.Parallel()
	r := idle(t, Config{Logger: slog.New(slog.DiscardHandler)})
	if age := time.Since(r.LastTick()); age < 0 || age > time.Minute {
		t.Errorf("a new relay ran %s ago", age)
	}
	synctest.Test(t, func(t *testing.T) {
		r := &Relay{config: Config{Logger: slog.New(slog.DiscardHandler)}, pulse: pulse{began: time.Now()}}
		tries := 0
		err := r.untilUsable(t.Context(), func(context.Context) (time.Duration, error) {
			if age := time.Since(r.LastTick()); age != 0 {
				t.Errorf("try %d: it ran %s ago", tries, age)
			}
			time.Sleep(10 * time.Second) // synctest: the longest that a try takes
			if tries++; tries < 20 {
				return untilPatient, errStandby
			}
			return 0, nil
		})
		if err != nil || time.Since(r.LastTick()) != 0 {
			t.Errorf("it ran %s ago: %v", time.Since(r.LastTick()), err)
		}
	})
}

func TestFailingTopics(t *testing.T) {
	t.Parallel()
	s := &shell{relay: idle(t, Config{Logger: slog.New(slog.DiscardHandler)}), work: t.Context()}
	want := func(want map[string]string) {
		t.Helper()
		if got := s.relay.FailingTopics(); !maps.Equal(got, want) {
			t.Errorf("paused are %v, want %v", got, want)
		}
	}
	want(nil)
	s.observe(core.Step{Do: core.DidPause, Topic: "orders", Detail: "no such stream"})
	s.observe(core.Step{Do: core.DidPause, Topic: "billing", Detail: "denied"})
	want(map[string]string{"orders": "no such stream", "billing": "denied"})
	s.relay.FailingTopics()["orders"] = "a copy"
	s.observe(core.Step{Do: core.DidResume, Topic: "orders"})
	want(map[string]string{"billing": "denied"})
	s.relay.paused.clear()
	want(nil)
}

func TestSampledSuccesses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		log          bool
		sample, want int
		sampled      string
	}{
		{log: false, sample: 1},
		{log: true, want: 9},
		{log: true, sample: 1, want: 9},
		{log: true, sample: 4, want: 3, sampled: "sampled=4"},
		{log: true, sample: 100, want: 1, sampled: "sampled=100"},
	} {
		var text bytes.Buffer
		s := &shell{
			relay: idle(t, Config{
				LogPublished: c.log, SamplePublished: c.sample, Logger: slog.New(slog.NewTextHandler(&text, nil)),
			}), work: t.Context(),
		}
		for range 9 {
			s.observe(core.Step{Do: core.DidAck})
		}
		if got := strings.Count(text.String(), "outcome=published"); got != c.want ||
			strings.Count(text.String(), "sampled=") != strings.Count(text.String(), c.sampled)*min(1, len(c.sampled)) {
			t.Errorf("%+v: %d lines\n%s", c, got, text.String())
		}
		s.observe(core.Step{Do: core.DidRefuse, Class: core.Rejected})
		if !strings.Contains(text.String(), "outcome=rejected") {
			t.Errorf("%+v: a failure is not logged", c)
		}
	}
}
