package sim

import (
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

func (w *World) restartDatabase() bool {
	w.crashed(w.store.Restart())
	return true
}

// killBackend lets the server recover under its postmaster.
func (w *World) killBackend() bool {
	w.crashed(w.store.Recover())
	return true
}

// crashed takes in that the server has crashed, and how many transactions were prepared.
func (w *World) crashed(prepared int) {
	w.cut(prepared)
	w.record.moment(check.DatabaseDown, "", outbox.ID{})
}

// cut lets the calls fail that are on their way, unless there is a pooler that makes them on another connection.
func (w *World) cut(prepared int) {
	if !w.plan.pooled {
		w.incarnation++
	}
	for range prepared {
		w.count(PreparedKept)
	}
}

// fallBehind lets a standby get no more of the log, and after a while be promoted.
func (w *World) fallBehind() bool {
	if w.behind {
		return false
	}
	w.behind = true
	standby := w.store.Copy()
	w.logf("the standby is behind from here on")
	w.after(w.soon(w.plan.config.Lease/2), func() {
		w.behind = false
		if !w.healed {
			w.promote(standby)
		}
	})
	return false // it is one when it is promoted
}

// promote makes the standby the primary. Where there is no pooler it may take its time.
func (w *World) promote(standby *memstore.Copy) {
	undone := w.store.Promote(standby)
	w.cut(undone.Prepared)
	if !w.plan.pooled && w.chance(0.5) {
		w.downUntil = w.now + w.soon(w.plan.config.Lease/2)
	}
	w.count(Failover)
	if undone.Floors > 0 {
		w.count(FloorInGap)
	}
	w.record.failedOver(&undone)
}

// failedOver writes down what a promotion took back.
func (r *recorder) failedOver(undone *memstore.Undone) {
	r.moment(check.Failover, "", outbox.ID{})
	for _, id := range undone.Changed {
		r.moment(check.Failover, "", id)
	}
	for _, id := range undone.Vanished {
		r.undone[id] = true
		r.moment(check.Failover, "", id)
	}
	for _, letter := range undone.Letters {
		record := letter.Record()
		record.Undone = true
		r.checker.Add(check.Record{Letter: &record})
	}
	for _, action := range undone.Actions {
		if action.Target == "" {
			record := action.Record()
			record.Undone = true
			r.checker.Add(check.Record{Action: &record})
		}
	}
	r.world.logf("a failover: %d rows are gone, %d are as they were, %d floors, %d letters, %d actions",
		len(undone.Vanished), len(undone.Changed), undone.Floors, len(undone.Letters), len(undone.Actions))
}

// unreachable tells whether no call reaches the database now.
func (w *World) unreachable(now time.Duration) bool { return now < w.downUntil && !w.healed }
