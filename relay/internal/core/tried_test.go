package core_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// history remembers what settles tell of publishes that failed.
type history struct {
	core.Store
	tried map[outbox.ID]core.Tried
}

func (h *history) Settle(ctx context.Context, settle *core.Settle) (core.SettleAnswer, error) {
	for _, retry := range settle.Retry {
		h.tried[retry.ID] = retry.Tried
	}
	for i := range settle.Dead {
		h.tried[settle.Dead[i].ID] = settle.Dead[i].Tried
	}
	return h.Store.Settle(ctx, settle)
}

// What an event's history is told of a publish: the class that it had, and the topic. A contract that is broken was
// never sent.
func TestSettlesTellOfThePublishThatFailed(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	outcomes, want := map[outbox.ID]core.Outcome{}, map[outbox.ID]core.Tried{}
	for i, outcome := range []core.Outcome{
		{},
		{Class: core.Rejected},
		{Class: core.Terminal, Reason: "rejected"},
		{Class: core.Terminal, Reason: "contract", Contract: true},
	} {
		id := p.emit(t, "0", fmt.Sprint(i), "a")
		outcomes[id] = outcome
		switch {
		case outcome.Contract:
			want[id] = core.Tried{}
		case outcome.Class != core.Acknowledged:
			want[id] = core.Tried{Class: outcome.Class, Topic: "topic"}
		}
	}
	r := p.relay(t, registry{"a": {Topic: "topic"}}, nil)
	store := &history{Store: p.store, tried: map[outbox.ID]core.Tried{}}
	r.via = store
	r.answer = func(publish *core.Publish) (core.Outcome, bool) { return outcomes[publish.Event.ID], true }
	r.pass(10 * time.Second)
	if !maps.Equal(store.tried, want) {
		t.Errorf("the history has %+v, want %+v", store.tried, want)
	}
}
