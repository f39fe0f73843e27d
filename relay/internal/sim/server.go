package sim

import (
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

func (sim *Simulation) restartDatabase() bool {
	sim.crashed(sim.store.Restart())
	return true
}

// killBackend lets the server recover under its postmaster.
func (sim *Simulation) killBackend() bool {
	sim.crashed(sim.store.Recover())
	return true
}

// crashed takes in that the server has crashed, and how many transactions were prepared.
func (sim *Simulation) crashed(prepared int) {
	sim.cut(prepared)
	sim.record.moment(check.DatabaseDown, "", outbox.ID{})
}

// cut lets the calls fail that are on their way, unless there is a pooler that makes them on another connection.
func (sim *Simulation) cut(prepared int) {
	if !sim.plan.pooled {
		sim.incarnation++
	}
	for range prepared {
		sim.count(PreparedKept)
	}
}

// fallBehind lets a standby get no more of the log, and after a while be promoted.
func (sim *Simulation) fallBehind() bool {
	if sim.standbyLags {
		return false
	}
	sim.standbyLags = true
	standby := sim.store.Copy()
	sim.logf("the standby is behind from here on")
	sim.after(sim.soon(sim.plan.config.Lease/2), func() {
		sim.standbyLags = false
		if !sim.healed {
			sim.promote(standby)
		}
	})
	return false // it is one when it is promoted
}

// promote makes the standby the primary. Where there is no pooler it may take its time.
func (sim *Simulation) promote(standby *memstore.Copy) {
	undone := sim.store.Promote(standby)
	sim.cut(undone.Prepared)
	if !sim.plan.pooled && sim.chance(0.5) {
		sim.downUntil = sim.now + sim.soon(sim.plan.config.Lease/2)
	}
	sim.count(Failover)
	if undone.Floors > 0 {
		sim.count(FloorInGap)
	}
	sim.record.failedOver(&undone)
}

// failedOver writes down what a promotion took back.
func (r *recorder) failedOver(undone *memstore.Undone) {
	r.moment(check.Failover, "", outbox.ID{})
	r.sim.shaken = r.sim.now
	for _, id := range undone.Changed {
		r.reverted[id] = r.sim.now
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
	for i := range undone.Requests { // a copy may have been sent, and need not be
		record := undone.Requests[i].Record()
		record.End = check.RequestFailed
		r.checker.Add(check.Record{Request: &record})
	}
	r.sim.logf("a failover: %d rows are gone, %d are as they were, %d floors, %d letters, %d actions",
		len(undone.Vanished), len(undone.Changed), undone.Floors, len(undone.Letters), len(undone.Actions))
}

// unreachable tells whether no call reaches the database now.
func (sim *Simulation) unreachable(now time.Duration) bool { return now < sim.downUntil && !sim.healed }
