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

//go:embed sql/forget.sql
var forgetSQL string

const (
	// timeout of a write: what it writes can wait for the next time.
	timeout = 2 * time.Second
	// forgotten is how many old rows one statement deletes, as forget.sql says.
	forgotten = 5_000
	// deniedPause is how long a role that may not write waits before it tries again.
	deniedPause = time.Minute
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
	// Waiting says what waits, by topic, if that was asked at this time or later; otherwise it is not known.
	Waiting func(since time.Time) (waiting map[string]Waiting, known bool)
	Logger  *slog.Logger

	run      outbox.ID
	asked    time.Time // the minute for which it was last asked what waits
	failed   bool      // the log has it
	denied   bool      // the log has it
	deniedAt time.Time
}

// Run writes each minute when it is over, until ctx ends; then what there is of the last.
func (w *Writer) Run(ctx context.Context, pool *pgxpool.Pool) {
	w.run, w.asked = outbox.NewID(), w.Counter.began
	ticker := time.NewTicker(w.Every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if now := w.Counter.now(); !w.denied || now.Sub(w.deniedAt).Abs() >= deniedPause {
				w.write(ctx, pool, timeout)
			}
		case <-ctx.Done():
			w.Counter.end()
			w.write(context.WithoutCancel(ctx), pool, farewell)
			return
		}
	}
}

// write writes all that is over, and deletes what is old. What cannot be written is kept for the next time: a grant or
// a server that is back may help.
func (w *Writer) write(ctx context.Context, pool *pgxpool.Pool, patience time.Duration) {
	rows := w.Counter.finished(w.waiting)
	if len(rows) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := pool.Exec(ctx, sqltext.In(w.Schema, writeSQL), arguments(w.run, rows)...)
	if err == nil {
		w.Counter.written(rows)
		err = w.forget(ctx, pool)
	}
	switch {
	case err == nil:
		w.failed, w.denied = false, false
	case sqlstate.PermissionDenied(err):
		w.deniedAt = w.Counter.now()
		if !w.denied {
			w.denied = true
			w.Logger.WarnContext(ctx, "what each topic carries is not written down: this role may not; grant it relay once "+
				"more: it is tried again every minute", slog.String("error", clean.Error(err)))
		}
	case !w.failed:
		w.failed = true
		w.Logger.WarnContext(ctx, "what each topic carries is not written down for now; it is tried again",
			slog.String("error", clean.Error(err)))
	}
}

// forget deletes all that is old, and not only as much as is written: relays that do so at the same time meet the same
// rows, and one that could not write for long has more to write than others.
func (w *Writer) forget(ctx context.Context, pool *pgxpool.Pool) error {
	for found := forgotten; found >= forgotten; {
		if err := pool.QueryRow(ctx, sqltext.In(w.Schema, forgetSQL)).Scan(&found); err != nil {
			return fmt.Errorf("delete old minutes: %w", err)
		}
	}
	return nil
}

// waiting is asked once for each minute: the survey's answer is of now, and not of a minute before.
func (w *Writer) waiting(minute time.Time) (waiting map[string]Waiting, known bool) {
	if !minute.After(w.asked) {
		return nil, false
	}
	w.asked = minute
	return w.Waiting(minute)
}

// end ends the minute, before its time.
func (c *Counter) end() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.turn(c.ends)
}

// finished are the minutes that are over, with what waited at the end of the last, if that is known.
func (c *Counter) finished(waiting func(minute time.Time) (map[string]Waiting, bool)) map[topicMinute]*counts {
	now := c.now()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.turn(now)
	last := c.minute.Add(-time.Minute)
	found, known := waiting(last)
	for at, n := range c.over {
		n.surveyed = n.surveyed || known && at.minute.Equal(last)
	}
	for topic, found := range found {
		if !known || topic == "" || found.Events == 0 || len(c.over) >= mostKept {
			continue
		}
		at := topicMinute{last, topic}
		if c.over[at] == nil {
			c.over[at] = &counts{surveyed: true}
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
	latencies, pending, oldest := make([]string, 0, n), make([]*int64, 0, n), make([]*float64, 0, n)
	for at, c := range rows {
		minutes, topics = append(minutes, at.minute), append(topics, at.topic)
		for i, number := range []int64{
			c.arrived, c.published, c.rejected, c.terminal, c.topicFault, c.unknown, c.died,
		} {
			numbers[i] = append(numbers[i], number)
		}
		latencies = append(latencies, "{"+strings.Trim(strings.ReplaceAll(fmt.Sprint(c.latencies), " ", ","), "[]")+"}")
		if !c.surveyed {
			pending, oldest = append(pending, nil), append(oldest, nil)
			continue
		}
		age := c.oldest.Seconds()
		pending, oldest = append(pending, &c.pending), append(oldest, &age)
	}
	args := []any{run.String(), minutes, topics}
	for i := range numbers {
		args = append(args, numbers[i])
	}
	return append(args, latencies, pending, oldest)
}
