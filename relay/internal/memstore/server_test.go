package memstore_test

import (
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// TestAStandbyLacksTheLastCommits: a promotion takes back rows, states and floors that it never got.
func TestAStandbyLacksTheLastCommits(t *testing.T) {
	t.Parallel()
	d := newDB(t)
	kept := d.emit("a")
	owner := d.register()
	token, _ := d.acquire(owner, 0)
	before := d.fence().Incarnation
	standby := d.Copy()
	gone := d.emit("a")
	d.settle(&core.Settle{Owner: owner, Lanes: []int16{0}, Published: d.rows(kept...)})
	d.heartbeat(core.Heartbeat{
		Owner: owner, Lanes: []core.Progress{{Tenure: core.Tenure{Lane: 0, Token: token}, Floor: 1}},
	})
	undone := d.Promote(standby)
	if len(undone.Vanished) != 1 || undone.Vanished[0] != gone[0] || len(undone.Changed) != 1 ||
		undone.Changed[0] != kept[0] || undone.Floors != 1 {
		t.Errorf("undone: %+v", undone)
	}
	if event, is := d.Event(kept[0]); !is || event.State != core.Ready || d.Lanes()[0].Floor != 0 {
		t.Errorf("the row is there: %t, in state %d, and the floor is %d", is, event.State, d.Lanes()[0].Floor)
	}
	if fence := d.fence(); fence.Incarnation == before || fence.Last != 1 {
		t.Errorf("the fence says %+v", fence)
	}
}

// TestPreparedTransactionsAreKept: by a restart, a recovery and a promotion, under another virtual id.
func TestPreparedTransactionsAreKept(t *testing.T) {
	t.Parallel()
	for name, crash := range map[string]func(*db) int{
		"restart":   func(d *db) int { return d.Restart() },
		"recovery":  func(d *db) int { return d.Recover() },
		"promotion": func(d *db) int { return d.Promote(d.Copy()).Prepared },
	} {
		d := newDB(t)
		event := core.Event{
			ID: outbox.ID{9}, Type: "placed", Aggregate: core.Aggregate{Namespace: "default", Type: "order", ID: "a"},
			Payload: []byte("{}"),
		}
		prepared, open := d.Begin(), d.Begin()
		if _, err := prepared.Emit(event); err != nil {
			t.Fatal(err)
		}
		if err := prepared.Prepare(); err != nil {
			t.Fatal(err)
		}
		before := d.fence()
		if kept := crash(d); kept != 1 || open.Open() {
			t.Errorf("%s: %d are kept, and the other is open: %t", name, kept, open.Open())
		}
		after := d.fence()
		if after.Incarnation == before.Incarnation || len(after.Writers) != 1 ||
			after.Writers[0].XID != before.Writers[0].XID || after.Writers[0].VXID == before.Writers[0].VXID {
			t.Errorf("%s: the fence says %+v, and before it said %+v", name, after, before)
		}
		if err := prepared.Commit(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, is := d.Event(event.ID); !is {
			t.Errorf("%s: the row of the prepared transaction is gone", name)
		}
	}
}
