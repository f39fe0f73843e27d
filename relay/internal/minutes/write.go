package minutes

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/sqlstate"
	"github.com/posthaste-dev/posthaste/relay/internal/sqltext"
)

//go:embed sql/write.sql
var writeSQL string

const (
	// timeout of a statement: what it writes can wait for the next time.
	timeout = 2 * time.Second
	// farewell is how long the end of a relay may wait for its last minute.
	farewell = 5 * time.Second
)

// Waiting is what waits for a topic: how many events, and the age of the oldest.
type Waiting struct {
	Events int64
	Oldest time.Duration
}

// A Writer writes down what a counter has counted.
type Writer struct {
	Counter *Counter
	Schema  string
	Every   time.Duration
	// Waiting says what waits now, by topic.
	Waiting func() map[string]Waiting
	Logger  *slog.Logger

	run    outbox.ID
	asked  time.Time // the minute for which it was last asked what waits
	failed bool
}

// Run writes each minute when it is over, until ctx ends; then what there is of the last.
func (w *Writer) Run(ctx context.Context, pool *pgxpool.Pool) {
	w.run, w.asked = outbox.NewID(), w.Counter.began
	ticker := time.NewTicker(w.Every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if !w.write(ctx, pool, timeout) {
				return
			}
		case <-ctx.Done():
			w.Counter.end()
			w.write(context.WithoutCancel(ctx), pool, farewell)
			return
		}
	}
}

// write writes all that is over, and tells whether there is any use in going on.
func (w *Writer) write(ctx context.Context, pool *pgxpool.Pool, patience time.Duration) bool {
	rows := w.Counter.finished(w.waiting)
	if len(rows) == 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := pool.Exec(ctx, sqltext.In(w.Schema, writeSQL), arguments(w.run, rows)...)
	switch {
	case err == nil:
		w.Counter.written(rows)
		w.failed = false
	case sqlstate.PermissionDenied(err):
		w.Logger.WarnContext(ctx, "what each topic carries is not written down: this role may not; grant it relay once more",
			slog.String("error", clean.Error(err)))
		return false
	case !w.failed:
		w.failed = true
		w.Logger.WarnContext(ctx, "what each topic carries is not written down for now; it is tried again",
			slog.String("error", clean.Error(err)))
	}
	return true
}

// waiting is asked once for each minute: the survey's answer is of now, and not of a minute before.
func (w *Writer) waiting(minute time.Time) map[string]Waiting {
	if !minute.After(w.asked) {
		return nil
	}
	w.asked = minute
	return w.Waiting()
}

// end ends the minute, before its time.
func (c *Counter) end() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.turn(c.ends)
}

// finished are the minutes that are over, with what waited at the end of the last.
func (c *Counter) finished(waiting func(minute time.Time) map[string]Waiting) map[topicMinute]*counts {
	now := c.now()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.turn(now)
	last := c.minute.Add(-time.Minute)
	for topic, found := range waiting(last) {
		if topic == "" || found.Events == 0 || len(c.over) >= mostKept {
			continue
		}
		at := topicMinute{last, topic}
		if c.over[at] == nil {
			c.over[at] = &counts{}
		}
		c.over[at].pending, c.over[at].oldest = found.Events, found.Oldest
	}
	return maps.Clone(c.over)
}

// written forgets what is written down.
func (c *Counter) written(rows map[topicMinute]*counts) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for at := range rows {
		delete(c.over, at)
	}
}

// arguments are those of write.sql.
func arguments(run outbox.ID, rows map[topicMinute]*counts) []any {
	n := len(rows)
	minutes, topics := make([]time.Time, 0, n), make([]string, 0, n)
	var numbers [7][]int64
	latencies, pending, oldest := make([]string, 0, n), make([]int64, 0, n), make([]float64, 0, n)
	for at, c := range rows {
		minutes, topics = append(minutes, at.minute), append(topics, at.topic)
		for i, number := range []int64{
			c.arrived, c.published, c.rejected, c.terminal, c.topicFault, c.unknown, c.died,
		} {
			numbers[i] = append(numbers[i], number)
		}
		latencies = append(latencies, "{"+strings.Trim(strings.ReplaceAll(fmt.Sprint(c.latencies), " ", ","), "[]")+"}")
		pending, oldest = append(pending, c.pending), append(oldest, c.oldest.Seconds())
	}
	args := []any{run.String(), minutes, topics}
	for i := range numbers {
		args = append(args, numbers[i])
	}
	return append(args, latencies, pending, oldest)
}
