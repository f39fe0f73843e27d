package operator

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/span"
)

// The bounds of a limit, in events per second.
const (
	MinRate = 0.001
	MaxRate = 1_000_000
)

// A Limit is how many events per second all relays together publish to a topic at most.
type Limit struct {
	Topic  string    `json:"topic"`
	Rate   float64   `json:"rate"`
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
}

// String says all of it in one line: "topic orders is limited to 200 per second by ada since 2026-11-15T03:00:00Z:
// consumers come back slowly".
func (l Limit) String() string {
	return fmt.Sprintf("topic %s is limited to %s per second by %s since %s: %s", l.Topic, PerSecond(l.Rate), l.Actor,
		l.Since.UTC().Format(time.RFC3339), l.Reason)
}

// PerSecond is a rate as people write it.
func PerSecond(rate float64) string { return strconv.FormatFloat(rate, 'f', -1, 64) }

// Limit has the whole fleet publish at most so many events per second to a topic, until [Operator.Unlimit] or another
// limit: the relays that run from within about a second on, and those that start later. What is published again counts
// as well: retries, and copies of published events. Nothing is charged, killed or reordered. Where the topic is limited
// to that already it changes nothing, and the outcome is NotApplicable. The action must have a reason: somebody else
// will have to lift it.
func (o *Operator) Limit(ctx context.Context, action Action, topic string, rate float64) (Outcome, error) {
	var problems []error
	if !(rate >= MinRate && rate <= MaxRate) { // not a number is neither
		problems = append(problems, fmt.Errorf("a limit is %s to %d events per second; a pause stops everything",
			PerSecond(MinRate), MaxRate))
	}
	if strings.TrimSpace(action.Reason) == "" {
		problems = append(problems, errors.New("a reason is required: somebody else will have to know when to lift it"))
	}
	return o.setLimit(ctx, action, topic, &rate, errors.Join(problems...))
}

// Unlimit ends the limit of a topic. Where there is none it changes nothing, and the outcome is NotApplicable.
func (o *Operator) Unlimit(ctx context.Context, action Action, topic string) (Outcome, error) {
	return o.setLimit(ctx, action, topic, nil, nil)
}

func (o *Operator) setLimit(ctx context.Context, action Action, topic string, rate *float64,
	problem error,
) (Outcome, error) {
	return o.decide(ctx, "limit", errors.Join(action.check(0), TopicScope(topic).check(), problem),
		o.limit, action.Actor, action.Reason, topic, rate, action.ID.String())
}

// Limits lists the limits that stand, by topic.
func (o *Operator) Limits(ctx context.Context) (limits []Limit, err error) {
	err = o.look(ctx, "limits", func(tx *looking) error {
		limits, err = o.limitsIn(ctx, tx)
		return err
	})
	return limits, err
}

// limitsIn lists them in a transaction that is there.
func (o *Operator) limitsIn(ctx context.Context, tx pgx.Tx) (limits []Limit, err error) {
	var l Limit
	err = o.rows(ctx, tx, "limits", nil, []any{&l.Topic, &l.Rate, &l.Actor, &l.Reason, &l.Since},
		func() { limits = append(limits, l) })
	return limits, err
}

// limitedTo says that the event waits for its turn among those of its topic.
func (f *facts) limitedTo() []Cause {
	for _, l := range f.limits {
		if f.event.Topic != "" && l.Topic == f.event.Topic {
			return []Cause{{
				Code: CauseTopicLimited, Keeps: true, Says: fmt.Sprintf("The topic %s is limited to %s per second, by all "+
					"relays together, since %s by %s: %s. It goes out in its turn.", l.Topic, PerSecond(l.Rate),
					span.Of(f.now.Sub(l.Since)), l.Actor, strings.TrimSuffix(l.Reason, ".")),
				Do: "when consumers can take more: outboxctl topics limit " + l.Topic + " none " + reasonWord,
			}}
		}
	}
	return nil
}
