package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// Copies is how the copies fare that an action asked for.
type Copies struct {
	// Open is how many are not sent yet, Failed how many a relay has given up.
	Open   int64 `json:"open"`
	Sent   int64 `json:"sent"`
	Failed int64 `json:"failed"`
	// Canceled is how many will not be sent because somebody canceled them.
	Canceled int64 `json:"canceled"`
	// AtLeast tells that nobody has counted further: there are more. Sent is computed from the other counts, so it is
	// zero then for a job that has open copies.
	AtLeast bool `json:"atLeast,omitempty"`
}

// ErrNoCopies says that no action of this id asked for copies, or that none of them is left in the table.
var ErrNoCopies = errors.New("no such action asked for copies")

const (
	// mostCopies is how many copies of a job are counted while it runs.
	mostCopies = 10_000
	// mostEnds is how many copies are looked at where there is no index for what is asked.
	mostEnds = 1_000_000
)

// copiesOf counts the copies of a job. People look often while it runs: what is not sent has an index, and the rest is
// sent. Where there is more of it than is counted so, all are looked at when none is open any more.
func (l *looking) copiesOf(ctx context.Context, job Job) (found Copies, err error) {
	if err := l.QueryRow(ctx, l.sql("job_copies"), job.ID.String(), mostCopies+1).
		Scan(&found.Open, &found.Failed, &found.Canceled); err != nil {
		return found, err //nolint:wrapcheck // look says what it was
	}
	found.AtLeast = found.Open > mostCopies || found.Failed+found.Canceled > mostCopies
	switch {
	case !found.AtLeast:
		found.Sent = max(job.Done-found.Open-found.Failed-found.Canceled, 0)
	case found.Open == 0 && job.Ended():
		return l.copies(ctx, job.ID)
	}
	return found, nil
}

// copies counts all copies of an action.
func (l *looking) copies(ctx context.Context, action outbox.ID) (found Copies, err error) {
	err = l.QueryRow(ctx, l.sql("copies"), action.String(), mostEnds).
		Scan(&found.Open, &found.Sent, &found.Failed, &found.Canceled)
	found.AtLeast = found.Open+found.Sent+found.Failed+found.Canceled >= mostEnds
	return found, err //nolint:wrapcheck // look says what it was
}

// Copies tells how the copies fare that an action asked for, with a job or without, at most 1,000,000 of them;
// [ErrNoCopies] where there are none.
func (o *Operator) Copies(ctx context.Context, action outbox.ID) (found Copies, err error) {
	err = o.look(ctx, "copies", func(l *looking) (err error) {
		if found, err = l.copies(ctx, action); err == nil && found == (Copies{}) {
			return ErrNoCopies
		}
		return err
	})
	return found, err
}

const (
	// mostWaitReasons is how many reasons are told for which copies may wait.
	mostWaitReasons = 5
	// kindsLooked is how many open copies are looked at for where they go.
	kindsLooked = 1000
)

// CopiesWait tells for what the open copies of an action may wait: no relay is alive, their topics or types are paused
// or limited, a topic fails, or they failed when they were sent. The grants of the viewer role are enough.
func (o *Operator) CopiesWait(ctx context.Context, action outbox.ID) (reasons []string, err error) {
	topics, types, failed, err := o.kindsOf(ctx, action)
	if err != nil || len(types) == 0 {
		return nil, err
	}
	relays, err := o.Relays(ctx, false)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(relays, func(r Relay) bool { return r.State == RelayAlive }) {
		reasons = append(reasons, "no relay is alive")
	}
	pauses, err := o.Pauses(ctx)
	if err != nil {
		return nil, err
	}
	for _, pause := range pauses {
		meant := true // everything
		switch pause.Kind {
		case string(core.ScopeTopic):
			meant = topics[pause.Name]
		case string(core.ScopeType):
			meant = types[pause.Name]
		}
		if meant {
			reasons = append(reasons, pause.String())
		}
	}
	all, err := o.Topics(ctx)
	if err != nil {
		return nil, err
	}
	for i := range all {
		topic := &all[i]
		if !topics[topic.Name] {
			continue
		}
		if len(topic.Failing) > 0 {
			reasons = append(reasons, fmt.Sprintf("topic %s fails: %s", topic.Name, quote(topic.Failing[0].Error)))
		}
		if topic.Limit != nil {
			reasons = append(reasons, topic.Limit.String())
		}
	}
	reasons = append(reasons, failed...)
	if more := len(reasons) - mostWaitReasons; more > 0 {
		reasons = append(reasons[:mostWaitReasons], fmt.Sprintf("and %d more", more))
	}
	return reasons, nil
}

// kindsOf are the topics that the open copies of an action go to, their types, and what went wrong with those that were
// tried.
func (o *Operator) kindsOf(ctx context.Context, action outbox.ID) (
	topics, types map[string]bool, failed []string, err error,
) {
	topics, types = map[string]bool{}, map[string]bool{}
	err = o.look(ctx, "copies", func(l *looking) error {
		rows, err := l.Query(ctx, l.sql("copies_kinds"), action.String(), kindsLooked)
		if err != nil {
			return err //nolint:wrapcheck // look says what it was
		}
		var named, lastError *string
		var eventType string
		var own []string // types that go to a topic of their own
		_, err = pgx.ForEachRow(rows, []any{&named, &eventType, &lastError}, func() error {
			types[eventType] = true
			if lastError != nil {
				failed = append(failed, fmt.Sprintf("a copy of type %s failed: %s", eventType, quote(*lastError)))
			}
			if named == nil {
				own = append(own, eventType)
			} else {
				topics[*named] = true
			}
			return nil
		})
		if err != nil || len(own) == 0 {
			return err //nolint:wrapcheck // look says what it was
		}
		of, err := l.topics(ctx, own)
		for _, topic := range of {
			topics[topic] = true
		}
		return err
	})
	return topics, types, failed, err
}
