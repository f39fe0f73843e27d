package torture

import (
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
)

// classes are the relay's classes of a failed publish in the checker's words.
var classes = map[publish.Class]check.Class{
	publish.Rejected: check.OfEvent, publish.Terminal: check.Terminal, publish.TopicFault: check.OfTopic,
	publish.Unknown: check.InDoubt, publish.NotSent: check.Shutdown,
}

// recorded translates a relay's step for the checker. False: the checker has no use for it. Leases are not
// taken from relays: the database is the witness of who held what.
func recorded(name string, step relay.Step, now time.Time) (check.Record, bool) {
	s := check.Step{
		Do: check.Do(step.Kind), Relay: name, Token: step.Token.String(), Lane: int(step.Lane), At: now.UnixMicro(),
		ID: step.Event, Request: step.Request,
	}
	if step.Kind == relay.StepSettleRequest {
		s.Do = check.Settle
	}
	switch s.Do {
	case check.Lose, check.Publish, check.Ack:
	case check.PublishFailed, check.Charge:
		s.Class = classes[step.Class]
		if step.Contract {
			s.Class = check.Broken
		}
	case check.Settle:
		s.Result, s.To = check.Result(step.Result), check.State(step.State)
		if step.Kind == relay.StepSettleRequest && step.Detail == "" {
			s.To = check.Published
		}
	case check.Acquire, check.Renew, check.Release:
		return check.Record{}, false
	default:
		return check.Record{}, false
	}
	return check.Record{Step: &s}, true
}
