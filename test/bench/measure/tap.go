package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
)

// A Tap hears what is said to the database on connections that it was put to: which statements, and in how many round
// trips. A relay's connections get it by its BeforeConnect.
type Tap struct {
	RoundTrips
	mutex sync.Mutex
	said  []string // each text once
}

// BeforeConnect puts the tap to a connection. It fits relay.Config.
func (t *Tap) BeforeConnect(_ context.Context, config *pgx.ConnConfig) error {
	config.DialFunc, config.Tracer = t.Dial, t
	return nil
}

// Statement is the one text that has all of these parts in it.
func (t *Tap) Statement(parts ...string) (string, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	var found []string
	for _, text := range t.said {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) }) {
			found = append(found, text)
		}
	}
	if len(found) != 1 {
		return "", fmt.Errorf("bench: of %d statements %d have %q, want one", len(t.said), len(found), parts)
	}
	return found[0], nil
}

func (t *Tap) note(text string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if !slices.Contains(t.said, text) {
		t.said = append(t.said, text)
	}
}

// TraceQueryStart is part of [pgx.QueryTracer].
func (t *Tap) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	t.note(data.SQL)
	return ctx
}

// TraceQueryEnd is part of [pgx.QueryTracer].
func (t *Tap) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart is part of [pgx.BatchTracer].
func (t *Tap) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	for _, query := range data.Batch.QueuedQueries {
		t.note(query.SQL)
	}
	return ctx
}

// TraceBatchQuery is part of [pgx.BatchTracer].
func (t *Tap) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd is part of [pgx.BatchTracer].
func (t *Tap) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}
