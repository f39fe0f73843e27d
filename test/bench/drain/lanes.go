package drain

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// laneSample is how often the lanes are looked at: the resolution of what is found.
const laneSample = 100 * time.Millisecond

// LaneWatch looks at the lanes for as long as relays run and keeps the longest time that one of them had no
// owner, or an owner whose lease had expired.
type LaneWatch struct {
	conn   *pgx.Conn
	stop   context.CancelFunc
	ended  chan struct{}
	failed error

	mutex   sync.Mutex
	had     map[int16]bool      // an owner: until then nobody has started
	since   map[int16]time.Time // when a lane was first seen without an owner
	longest time.Duration
	lanes   int
}

// WatchLanes begins to look. A lane that has not had an owner yet is free, and its time does not count: how long
// processes take to start says nothing.
func WatchLanes(ctx context.Context, w *Env) (*LaneWatch, error) {
	config, err := w.DB.Config("bench-lanes")
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("drain: watch the lanes: %w", err)
	}
	watch := &LaneWatch{conn: conn, ended: make(chan struct{}), had: map[int16]bool{}, since: map[int16]time.Time{}}
	if err := watch.look(ctx); err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	ctx, watch.stop = context.WithCancel(ctx)
	go watch.run(ctx)
	return watch, nil
}

func (w *LaneWatch) run(ctx context.Context) {
	defer close(w.ended)
	ticker := time.NewTicker(laneSample)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := w.look(ctx); err != nil && ctx.Err() == nil {
			w.failed = err
			return
		}
	}
}

func (w *LaneWatch) look(ctx context.Context) error {
	rows, err := w.conn.Query(ctx,
		"SELECT lane, coalesce(lease_until > clock_timestamp(), false), clock_timestamp() FROM "+outboxSchema+
			".outbox_lane_status")
	if err != nil {
		return fmt.Errorf("drain: watch the lanes: %w", err)
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	var lane int16
	var owned bool
	var at time.Time
	w.lanes = 0
	_, err = pgx.ForEachRow(rows, []any{&lane, &owned, &at}, func() error {
		w.lanes++
		w.see(lane, owned, at)
		return nil
	})
	if err != nil {
		return fmt.Errorf("drain: watch the lanes: %w", err)
	}
	return nil
}

func (w *LaneWatch) see(lane int16, owned bool, at time.Time) {
	free, wasFree := w.since[lane]
	if wasFree && w.had[lane] {
		w.longest = max(w.longest, at.Sub(free))
	}
	switch {
	case owned:
		w.had[lane] = true
		delete(w.since, lane)
	case !wasFree:
		w.since[lane] = at
	}
}

// Free is how many lanes had no owner at the last look.
func (w *LaneWatch) Free() int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return len(w.since)
}

// Stop ends the watch and returns the longest time without an owner.
func (w *LaneWatch) Stop(ctx context.Context) (time.Duration, error) {
	w.stop()
	<-w.ended
	return w.longest, errors.Join(w.failed, w.conn.Close(ctx))
}
