package torture

import (
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/relay"
)

// classes are the relay's classes of a failed publish in the judge's words. The numbers are the relay's.
var classes = map[int]check.Class{
	1: check.OfEvent, 2: check.Terminal, 3: check.OfRoute, 4: check.InDoubt, 5: check.Shutdown,
}

// recorded translates a relay's step for the judge. False: the judge has no use for it. Leases are not
// taken from relays: the database is the witness of who held what.
func recorded(life string, step relay.Step, now time.Time) (check.Record, bool) {
	s := check.Step{
		Do: check.Do(step.Do), Relay: life, Token: step.Token.String(), Lane: int(step.Lane), At: now.UnixMicro(),
		ID: step.Event,
	}
	switch s.Do {
	case check.Lose, check.Publish, check.Ack:
	case check.Refuse, check.Charge:
		s.Class = classes[int(step.Class)]
		if step.Contract {
			s.Class = check.Broken
		}
	case check.Settle:
		s.Result, s.To = check.Result(step.Result), check.State(step.State)
	case check.Acquire, check.Renew, check.Release:
		return check.Record{}, false
	default:
		return check.Record{}, false
	}
	return check.Record{Step: &s}, true
}
