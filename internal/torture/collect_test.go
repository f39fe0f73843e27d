package torture

import (
	"testing"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
)

// A relay's charge was not answered, and was written. Sent again it is a death, which is not written, and is told as
// applied.
func TestUnwitnessed(t *testing.T) {
	t.Parallel()
	id := outbox.NewID()
	step := func(do check.Do, at int64, result check.Result, to check.State) check.Record {
		return check.Record{Step: &check.Step{Do: do, Relay: "x", Token: "t", ID: id, At: at, Result: result, To: to}}
	}
	for name, applied := range map[string]check.State{"another state": 5, "published and not written": 6} {
		c := collector{changes: map[outbox.ID][]change{id: {{at: 20, after: 1}}}}
		c.steps = check.History{
			step(check.Publish, 10, "", 0), step(check.PublishFailed, 11, "", 0),
			step(check.Settle, 21, check.Uncertain, 1), step(check.Settle, 30, check.Applied, applied),
		}
		c.correct()
		if c.unwitnessed != 1 {
			t.Errorf("%s: unwitnessed %d, result %s", name, c.unwitnessed, c.steps[3].Step.Result)
		}
	}
}
