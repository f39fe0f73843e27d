package relay

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// older is the registry of a relay from before order_shipped.
func older(t testing.TB) func(*relay.Config) {
	t.Helper()
	return func(config *relay.Config) { config.Registry = registry(t, placed, billed) }
}

// V1, RG-4: an unknown type is parked with an alarm, what is behind it in its aggregate waits, and a relay that knows
// it beside the old one publishes all of it in order. Nobody is charged.
func TestAnUnknownTypeWaitsForARelayThatKnowsIt(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		p.emit(t, placed.New("1", note{N: 1}))
		unknown := p.emit(t, shipped.New("1", note{N: 2}))[0]
		p.emit(t, placed.New("1", note{N: 3}))
		p.emit(t, billed.New("1", note{N: 4}))
		p.emit(t, placed.New("2", note{N: 1}))
		p.start(t, "old", older(t))
		r := p.awaitState(t, unknown, parked)
		eventually.True(t, "what may go", func() bool { return p.inState(t, published) == 2 && p.inState(t, waiting) == 2 })
		if r.attempts != 0 || r.lastError == "" {
			t.Errorf("parked as %+v", r)
		}
		if got := p.broker.took("1"); !slices.Equal(got, []int{1}) {
			t.Errorf("past the unknown one went %v", got)
		}
		if alarms := p.logs.lines(t, "msg", "alarm"); len(alarms) != 1 ||
			!strings.Contains(alarms[0]["detail"].(string), "order_shipped") {
			t.Errorf("alarms: %v", alarms)
		}
		p.start(t, "new") // a lane stays with its relay for some seconds before it moves to one that knows more
		p.awaitPublished(t, 5)
		p.wantDelivered(t)
		var orders []int
		for _, d := range p.broker.deliveries(func(d *delivery) bool { return d.AggregateID == "1" && d.Topic == "orders" }) {
			orders = append(orders, d.n())
		}
		if !slices.Equal(orders, []int{1, 2, 3}) {
			t.Errorf("delivered %v", orders)
		}
		if p.Count(t, "SELECT count(*) FROM {schema}.outbox_dlq") > 0 {
			t.Error("something died")
		}
	})
}

// RG-4: an unknown type is dead at once where that was asked for, and its followers go on.
func TestAnUnknownTypeIsDeadAtOnceWhereAsked(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		id := p.emit(t, shipped.New("1", note{}))[0]
		behind := p.emit(t, placed.New("1", note{}))[0]
		p.start(t, "old", older(t), with(func(s *relay.Settings) { s.UnknownTypeMaxAge = -1 }))
		if r := p.awaitState(t, id, dead); r.attempts != 0 {
			t.Errorf("dead as %+v", r)
		}
		p.awaitState(t, behind, published)
		if reason, topic, _ := p.letter(t, id); reason != "unknown_event_type" || topic != "none" {
			t.Errorf("dead because of %s on %s", reason, topic)
		}
		if len(p.broker.of(id)) > 0 {
			t.Error("it was published")
		}
	})
}

// RG-4: and else when nobody came to know it in time, which its followers wait for. Parked events are looked through
// twice a minute.
func TestAnUnknownTypeIsDeadAfterItsAge(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		id := p.emit(t, shipped.New("1", note{}))[0]
		p.start(t, "old", older(t), with(func(s *relay.Settings) { s.UnknownTypeMaxAge = 5 * time.Second }))
		p.awaitState(t, id, parked)
		behind := p.emit(t, placed.New("1", note{}))[0]
		p.awaitState(t, id, dead)
		p.awaitState(t, behind, published)
		if reason, topic, _ := p.letter(t, id); reason != "unknown_event_type" || topic != "none" {
			t.Errorf("dead because of %s on %s", reason, topic)
		}
		if p.Count(t, "SELECT count(*) FROM {schema}.outbox_dlq WHERE failed_at - created_at < interval '5 s'") > 0 {
			t.Error("it died too early")
		}
	})
}

// canary stands for what must not get out.
const canary = "4111111111111111"

// V3, V5, RG-4, DL-3, 5.6: a broken contract is the event's death at once, with path and rule and without the payload.
func TestABrokenContractIsDeadAtOnce(t *testing.T) {
	t.Parallel()
	envelope := func(data string) string {
		return `{"version":1,"eventId":"{id}","occurredAt":"2026-03-01T12:30:15Z","data":` + data + `}`
	}
	cases := map[string]struct{ aggregateType, payload, reason, says string }{
		"wrong type of a field": {"order", envelope(`{"n":"` + canary + `"}`), "invalid_payload", "n"},
		"the contract's rule":   {"order", envelope(`{"n":-` + canary + `}`), "invalid_payload", "must not be negative"},
		"data is null":          {"order", envelope(`null`), "invalid_payload", "data"},
		"data is a list":        {"order", envelope(`["` + canary + `"]`), "invalid_payload", "data"},
		"no data": {
			"order", `{"version":1,"eventId":"{id}","occurredAt":"2026-03-01T12:30:15Z"}`, "invalid_payload", "data",
		},
		"no version": {
			"order", `{"eventId":"{id}","occurredAt":"2026-03-01T12:30:15Z","data":{"text":"` + canary + `"}}`,
			"invalid_payload", "version",
		},
		"another aggregate": {"card", envelope(`{"n":1,"text":"` + canary + `"}`), "aggregate_mismatch", "order"},
	}
	onEach(t, func(t *testing.T, p *env) {
		p.start(t, "a")
		for name, broken := range cases {
			id := p.insert(t, "order_placed", broken.aggregateType, name, broken.payload)
			r := p.awaitState(t, id, deadBlocking)
			reason, topic, detail := p.letter(t, id)
			if r.attempts != 0 {
				t.Errorf("%s: nothing was sent, and %d attempts were counted", name, r.attempts)
			}
			if reason != broken.reason || topic != "orders" || !strings.Contains(detail, broken.says) {
				t.Errorf("%s: dead because of %s on %s: %s", name, reason, topic, detail)
			}
			if strings.Contains(detail+r.lastError, canary) {
				t.Errorf("%s: the error quotes the payload: %s", name, detail)
			}
		}
		good := p.emit(t, placed.New("good", note{}))[0]
		p.awaitState(t, good, published)
		if n := p.broker.count(); n != 1 {
			t.Errorf("%d deliveries, want that of the good one", n)
		}
		if strings.Contains(p.logs.text(), canary) {
			t.Error("the log quotes a payload")
		}
	})
}

// V4: when most events of a type break their contract the type is parked: after a bad deploy the fault is not theirs.
func TestATypeWhoseContractBreaksIsParkedAndNotKilled(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		const events = 60
		for i := range events {
			p.emit(t, placed.New(strings.Repeat("x", i+1), note{N: 1}))
		}
		strict := outbox.Define[struct {
			N bool `json:"n"`
		}](placed.Contract())
		a := p.start(t, "bad deploy", func(config *relay.Config) { config.Registry = registry(t, strict) })
		eventually.True(t, "all looked at", func() bool { return p.inState(t, ready) == 0 })
		died := p.inState(t, deadBlocking)
		if died > 20 || died+p.inState(t, parked) != events {
			t.Errorf("%d of %d events died of the bad deploy", died, events)
		}
		if err := a.stop(t); err != nil {
			t.Error(err)
		}
		p.start(t, "good deploy")
		eventually.True(t, "the parked ones", func() bool { return p.inState(t, published) == events-died })
	})
}

// X1: malformed events of one tenant are set aside, and those of others that are of the same type go out.
func TestMalformedEventsOfOneTenantStopNobodyElse(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		const malformed, good = 12, 30
		p.start(t, "a")
		for i := range malformed {
			p.insert(t, "order_placed", "order", fmt.Sprint("malformed ", i),
				`{"version":1,"eventId":"{id}","occurredAt":"2026-03-01T12:30:15Z","data":{"n":"one"}}`)
		}
		eventually.True(t, "the malformed ones looked at", func() bool { return p.inState(t, ready) == 0 })
		for i := range good {
			p.emit(t, placed.New(fmt.Sprint("good ", i), note{N: 1}))
		}
		eventually.True(t, "all looked at", func() bool { return p.inState(t, ready) == 0 })
		out, died, aside := p.inState(t, published), p.inState(t, deadBlocking), p.inState(t, parked)
		if out != good || died != 10 || aside != 2 {
			t.Errorf("%d of %d good events are out; %d died, %d are parked, want 10 and 2", out, good, died, aside)
		}
	})
}
