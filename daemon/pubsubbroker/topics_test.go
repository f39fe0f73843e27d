package pubsubbroker

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
)

type finding = googlepubsub.Finding

func missing(topic string) finding {
	return finding{Level: slog.LevelWarn, Code: googlepubsub.TopicMissing, Text: topic + " is missing"}
}

func unread(topic string) finding {
	return finding{Level: slog.LevelWarn, Code: googlepubsub.NoSubscription, Text: topic + " is not read"}
}

// What Pub/Sub says about two topics, one answer after the other, and whether the publisher is ready then.
func TestReadinessByTopics(t *testing.T) {
	t.Parallel()
	type answer struct {
		findings []finding
		err      error
		want     string // why it is not ready
	}
	outage := errors.New("away")
	for name, answers := range map[string][]answer{
		"all well":                    {{}},
		"an outage at the start":      {{err: outage, want: "cannot be looked at"}, {err: outage, want: "cannot be"}, {}},
		"one is missing":              {{findings: []finding{missing("a")}}, {}},
		"both are":                    {{findings: []finding{missing("a"), missing("b")}, want: "none of the 2"}, {}},
		"nobody reads":                {{findings: []finding{unread("a"), unread("b")}}},
		"an outage after one missing": {{findings: []finding{missing("a")}}, {err: outage}, {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				var calls atomic.Int64
				topics := &topics{
					names: []string{"a", "b"}, logger: slog.New(slog.NewTextHandler(&log, nil)),
					check: func(context.Context, []string) ([]finding, error) {
						answer := answers[calls.Add(1)-1]
						return answer.findings, answer.err
					},
				}
				topics.start(t.Context())
				for i, each := range answers {
					synctest.Wait()
					if asked := calls.Load(); asked != int64(i+1) {
						t.Fatalf("asked %d times, want %d", asked, i+1)
					}
					for range 3 { // a probe asks nobody
						if err := topics.ready(t.Context()); (err == nil) != (each.want == "") ||
							err != nil && !strings.Contains(err.Error(), each.want) {
							t.Errorf("after answer %d: %v, want %q", i+1, err, each.want)
						}
					}
					time.Sleep(time.Duration(1<<i) * time.Second) // synctest
				}
				time.Sleep(time.Hour) // synctest
				synctest.Wait()
				if asked := calls.Load(); asked != int64(len(answers)) {
					t.Errorf("asked %d times, and all was well after %d", asked, len(answers))
				}
				topics.close()
				if told := strings.Count(log.String(), "a is missing"); told > 1 {
					t.Errorf("told %d times:\n%s", told, log.String())
				}
			})
		})
	}
}

// Pub/Sub does not answer: the probe does not wait longer than it may, and the end waits for nobody.
func TestReadinessWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		topics := &topics{
			names: []string{"a"}, logger: slog.New(slog.DiscardHandler),
			check: func(ctx context.Context, _ []string) ([]finding, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
		}
		topics.start(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if err := topics.ready(ctx); err == nil || !strings.Contains(err.Error(), "not answered yet") {
			t.Error(err)
		}
		topics.close()
	})
}
