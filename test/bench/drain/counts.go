package drain

import (
	"context"
	"fmt"

	"github.com/posthaste-dev/posthaste/test/bench/measure"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// Counts are what a drain cost, per event. No other work on the machine changes them, but for how many events were
// taken at once.
type Counts struct {
	WAL          float64 // bytes, without page images
	HOT          float64 // share of the updates of the table that stayed on their page, and touched no index
	RoundTrips   float64 // for 1,000 events; the longer it takes, the more fences and looks are among them
	Settles      float64 // statements for 1,000 events
	Read, Settle float64 // pages that were looked at
}

// settleText is in every statement here that settles.
const settleText = "published_at = clock_timestamp()"

// Count measures a turn, and counts as well. Its times are as good as those of [Env.Measure].
func (w *Env) Count(ctx context.Context, template Template, d Drainer) (turn Turn, err error) {
	meter, err := bench.NewWALMeter(ctx, w.DB)
	if err != nil {
		return turn, err
	}
	counts := &Counts{}
	turn, err = w.measure(ctx, template, d, func(drain func() error) error {
		if err := w.DB.CountPages(ctx); err != nil {
			return err
		}
		events, trips := float64(template.Events), w.tap.Count()
		allBefore, hotBefore, err := w.updates(ctx, d.Table)
		if err != nil {
			return err
		}
		wal, err := meter.Measure(ctx, func(context.Context) error { return drain() })
		if err != nil {
			return err
		}
		counts.WAL, counts.RoundTrips = float64(wal.Data())/events, 1000*float64(w.tap.Count()-trips)/events
		all, hot, err := w.updates(ctx, d.Table)
		if err != nil {
			return err
		}
		counts.HOT = float64(hot-hotBefore) / float64(all-allBefore)
		read, err := w.DB.PagesOf(ctx, d.Reads)
		if err != nil {
			return err
		}
		settle, err := w.DB.PagesOf(ctx, settleText)
		counts.Read, counts.Settle = read.Each(template.Events), settle.Each(template.Events)
		counts.Settles = 1000 * float64(settle.Calls) / events
		return err
	})
	turn.Counts = counts
	return turn, err
}

// updates of a table, and how many were HOT. A server's process reports what it did when it ends.
func (w *Env) updates(ctx context.Context, table string) (all, hot int64, err error) {
	err = eventually.Within(ctx, eventually.Patience, "the server's processes end", func() (bool, error) {
		backends, err := w.Backends(ctx)
		return len(backends) == 0, err
	})
	if err != nil {
		return 0, 0, err
	}
	err = w.DB.Control.QueryRow(ctx,
		"SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relid = $1::text::regclass", table).Scan(&all, &hot)
	if err != nil {
		return 0, 0, fmt.Errorf("drain: updates: %w", err)
	}
	return all, hot, nil
}
