package torture

import (
	"context"
	_ "embed"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
)

var (
	//go:embed sql/events.sql
	eventsQuery string
	//go:embed sql/held.sql
	heldQuery string
)

type eventRow struct {
	ID           outbox.ID
	Seq          int64
	Column, Kind int16
	Type         string
	Attempts     int
	Published    bool
}

type heldRow struct {
	ID    *outbox.ID
	Lane  int16
	Seq   int64
	Kind  int16
	Due   bool
	Alien bool
}

// Events reads where all events stand from the two tables that say it. A history with these ends with End.Held.
func Events(ctx context.Context, pool *pgxpool.Pool, schema string) (check.History, error) {
	var h check.History
	in := func(query string) string { return strings.ReplaceAll(query, "{schema}", schema) }
	err := eachRow(ctx, pool, in(eventsQuery), func(r eventRow) {
		h = append(h, check.Record{Row: &check.Row{
			ID: r.ID, Seq: r.Seq, State: check.StateOf(r.Column, r.Kind), Type: r.Type, Attempts: r.Attempts,
			Published: r.Published,
		}})
	})
	if err != nil {
		return nil, err
	}
	err = eachRow(ctx, pool, in(heldQuery), func(r heldRow) {
		held := &check.Held{Lane: int(r.Lane), Seq: r.Seq, Kind: check.State(r.Kind), Due: r.Due, Alien: r.Alien}
		if r.ID != nil {
			held.ID = *r.ID
		}
		h = append(h, check.Record{Held: held})
	})
	return h, err
}
