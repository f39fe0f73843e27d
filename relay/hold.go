package relay

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/relay/internal/sqltext"
)

//go:embed sql/pending.sql
var pendingSQL string

// mostSaid is how many types and states one line of the log names.
const mostSaid = 50

// RestoreHold says why a relay that runs publishes nothing, and what it would send.
type RestoreHold struct {
	// Reason is what was found.
	Reason string
	// Pending is what the relay would send, by type and state. What was published after the backup was taken is
	// not known here: it is among these as well.
	Pending []Pending
}

// Pending are events of one type in one state.
type Pending struct {
	Type           string
	Topic          string // empty: the type is not in the registry
	State          string // as docs/reference/schema.md calls it
	Count          int64
	Oldest, Newest time.Time // created_at
}

// WouldSend is how many events are pending.
func (h *RestoreHold) WouldSend() (events int64) {
	for _, pending := range h.Pending {
		events += pending.Count
	}
	return events
}

// RestoreHold returns why the relay publishes nothing at all, or nil. It does so on a database that was restored or
// copied, until operator.Operator.Resume, and on one whose sequence is behind the numbers in use, until that is set.
// Topics that fail are [Relay.FailingTopics], what people have paused [Relay.OperatorPauses]. It may be called at any
// time.
func (r *Relay) RestoreHold() *RestoreHold { return r.hold.Load() }

// obstacle is why a relay that runs must publish nothing until somebody has acted.
type obstacle interface {
	error
	// say logs it, with what would be sent.
	say(ctx context.Context, logger *slog.Logger, pending []slog.Attr)
}

// awaitDatabase returns when the relay is on the server of the outbox, and nothing stands in its way. Until then it
// holds nothing and publishes nothing.
func (r *Relay) awaitDatabase(ctx context.Context, d *databaseIdentity, config *pgx.ConnConfig) error {
	var saidAt time.Time
	var said string
	return r.untilUsable(ctx, func(ctx context.Context) (wait time.Duration, err error) {
		ctx, cancel := context.WithTimeout(ctx, r.config.Lease/3)
		defer cancel()
		conn, err := r.connect(ctx, config)
		if err != nil {
			return untilPatient, fmt.Errorf("relay: %w", err)
		}
		defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
		if err = d.check(ctx, conn); err == nil {
			err = d.checkSequence(ctx, conn)
		}
		var found obstacle
		switch {
		case errors.As(err, &found):
			if time.Since(saidAt) >= sayPeriod || said != found.Error() {
				saidAt, said = time.Now(), found.Error()
				r.sayPaused(ctx, conn, found)
			}
			return pausePeriod, nil
		case err != nil:
			return untilPatient, err
		}
		d.reset()
		if r.hold.Swap(nil) != nil {
			r.config.Logger.InfoContext(ctx, "the outbox goes on")
		}
		return 0, nil
	})
}

// sayPaused counts what would be sent, and says so.
func (r *Relay) sayPaused(ctx context.Context, conn *pgx.Conn, found obstacle) {
	hold := &RestoreHold{Reason: found.Error()}
	problem := r.count(ctx, conn, hold)
	r.hold.Store(hold)
	var details []string
	var oldest, newest time.Time
	for _, p := range hold.Pending {
		details = append(details, fmt.Sprintf("%s (%s): %d %s", p.Type, p.Topic, p.Count, p.State))
		if oldest.IsZero() || p.Oldest.Before(oldest) {
			oldest = p.Oldest
		}
		if p.Newest.After(newest) {
			newest = p.Newest
		}
	}
	attributes := []slog.Attr{
		slog.String("reason", hold.Reason), slog.Int64("would_send", hold.WouldSend()),
		slog.Time("oldest", oldest), slog.Time("newest", newest),
		slog.String("pending", strings.Join(details[:min(mostSaid, len(details))], ", ")),
	}
	if problem != nil { // a table that takes too long to count
		attributes = append(attributes, slog.String("error", clean.Error(problem)))
	}
	found.say(ctx, r.config.Logger, attributes)
}

func (r *Relay) count(ctx context.Context, conn *pgx.Conn, hold *RestoreHold) error {
	rows, err := conn.Query(ctx, sqltext.In(r.config.Schema, pendingSQL))
	if err != nil {
		return err //nolint:wrapcheck // it is logged
	}
	var p Pending
	var is int16
	_, err = pgx.ForEachRow(rows, []any{&p.Type, &is, &p.Count, &p.Oldest, &p.Newest}, func() error {
		p.Topic, p.State = "", state.State(is).String()
		if contract, known := r.config.Registry.Contract(p.Type); known {
			p.Topic = contract.Topic
		}
		hold.Pending = append(hold.Pending, p)
		return nil
	})
	return err //nolint:wrapcheck // it is logged
}
