package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// RL-14, 5.6: one line for every attempt, with everything that tells which it was, and never a payload.
func TestALineForEveryAttempt(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		p.broker.answer = func(_ context.Context, message *publish.Message, try int) error {
			switch {
			case message.AggregateID == "dies" || message.AggregateID == "stumbles" && try == 1:
				return &publish.RejectedError{Err: errors.New("not now")}
			case message.AggregateID == "terminal":
				return &publish.TerminalError{Reason: publish.ReasonTooLarge, Err: errors.New("too much")}
			case message.AggregateID == "lost" && try == 1:
				return context.DeadlineExceeded
			}
			return nil
		}
		ids := map[outbox.ID]string{}
		for _, aggregate := range []string{"passes", "stumbles", "dies", "terminal", "lost"} {
			contract := placed
			if aggregate == "lost" {
				contract = billed // on a topic of its own: nothing that the topic carries meanwhile makes the fault the event's
			}
			event := contract.New(aggregate, note{Text: canary})
			event.Headers = map[string]string{"card": canary}
			ids[p.emit(t, event)[0]] = aggregate
		}
		p.insert(t, "order_placed", "order", "broken", `{"version":1,"eventId":"{id}","occurredAt":"`+canary+`","data":{}}`)
		p.start(t, "a", with(longLease), with(func(s *relay.Settings) { s.MaxAttempts = 2 }), func(config *relay.Config) {
			config.LogPublished = true
			config.Logger = slog.New(slog.NewJSONHandler(p.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
		eventually.True(t, "all at their end", func() bool {
			return p.inState(t, published) == 3 && len(p.logs.lines(t, "outcome", "dead")) == 3
		})
		got := map[string][]string{}
		for _, line := range p.logs.lines(t, "msg", "event") {
			for _, field := range []string{
				"event_id", "event_type", "aggregate_type", "aggregate_id", "attempt", "outcome", "redelivered",
			} {
				if value, there := line[field]; !there || value == "" {
					t.Errorf("a line without %s: %v", field, line)
				}
			}
			id, err := outbox.ParseID(fmt.Sprint(line["event_id"]))
			if err != nil {
				t.Fatal(err)
			}
			got[ids[id]] = append(got[ids[id]], fmt.Sprintf("%v %v redelivered=%v", line["attempt"], line["outcome"],
				line["redelivered"]))
		}
		for aggregate, want := range map[string][]string{
			"passes":   {"1 published redelivered=false"},
			"stumbles": {"1 rejected redelivered=false", "2 published redelivered=true"},
			"dies":     {"1 rejected redelivered=false", "2 rejected redelivered=true", "2 dead"},
			"terminal": {"1 terminal redelivered=false", "1 dead"},
			"lost":     {"1 unknown redelivered=false", "1 published redelivered=true"},
		} {
			if !slices.EqualFunc(got[aggregate], want, strings.HasPrefix) {
				t.Errorf("%s: logged %q, want %q", aggregate, got[aggregate], want)
			}
		}
		if strings.Contains(p.logs.text(), canary) {
			t.Error("a payload or a header is in the log")
		}
	})
}

// RL-14: lines of success are for those who ask for them.
func TestSuccessIsLoggedOnlyWhereAsked(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		p.emit(t, placed.New("1", note{}))
		p.start(t, "a", with(longLease))
		p.awaitPublished(t, 1)
		if lines := p.logs.lines(t, "msg", "event"); len(lines) > 0 {
			t.Errorf("logged %v", lines)
		}
	})
}
