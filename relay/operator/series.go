package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// A Minute is what was carried in one.
type Minute struct {
	Counts

	// At is when it began.
	At time.Time `json:"at"`
}

// Series says what was carried minute by minute in the last so many minutes that are over, at most [MaxMinutes], the
// oldest first: of one topic, or of all together where it is empty. Minutes in which nothing happened have zeros, and
// those before relays began to write are left out, and so is the newest while no relay has written it. Of minutes that
// nobody wrote Pending and Oldest are nil.
func (o *Operator) Series(ctx context.Context, lastMinutes int, topic string) (series []Minute, err error) {
	if err := checkTopic(topic); err != nil {
		return nil, fmt.Errorf("operator: series: %w", notUnderstoodError{err})
	}
	lastMinutes = min(max(lastMinutes, 1), MaxMinutes)
	err = o.look(ctx, "series", func(l *looking) error {
		rows, err := l.Query(ctx, l.sql("series"), lastMinutes, topic)
		if err != nil {
			return err //nolint:wrapcheck // look says what it was
		}
		series, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (m Minute, err error) {
			err = row.Scan(append([]any{&m.At}, m.fields()...)...)
			m.At = m.At.UTC()
			return m, err //nolint:wrapcheck // look says what it was
		})
		return err //nolint:wrapcheck // look says what it was
	})
	return series, err
}
