package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// unanswered loses the answer to every settle that writes a dead letter, and then somebody does something.
type unanswered struct {
	*memstore.Store
	then func()
}

func (u unanswered) Settle(ctx context.Context, settle *core.Settle) (core.SettleAnswer, error) {
	letters := len(u.Letters())
	answer, err := u.Store.Settle(ctx, settle)
	if len(u.Letters()) > letters {
		u.then()
		return core.SettleAnswer{}, errors.New("the connection broke")
	}
	return answer, err
}

// A death whose answer was lost is settled again. An operator who redrove the event meanwhile is not overruled,
// whether the event died from ready or of a redrive before.
func TestADeathIsNotSettledAgainAfterARedrive(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "topic", Block: true}}, nil)
	event := p.emit(t, "0", "one", "a")
	r.via = unanswered{p.store, func() { p.operate(t, check.Redrive, event) }}
	r.answer = func(*core.Publish) (core.Outcome, bool) {
		if len(r.sent) < 3 {
			return core.Outcome{Class: core.Terminal, Reason: "rejected"}, true
		}
		return core.Outcome{}, true
	}
	r.pass(time.Minute)
	state, letters := p.state(t, event), len(p.store.Letters())
	if state != core.Published || letters != 2 || len(r.sent) != 3 {
		t.Errorf("after the redrive the event is in state %d, with %d letters, sent %d times", state, letters, len(r.sent))
	}
}
