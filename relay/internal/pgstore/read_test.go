package pgstore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

func (w *world) read(t testing.TB, read core.Read) core.ReadAnswer {
	t.Helper()
	if read.MaxBytes == 0 {
		read.MaxBytes = 1 << 30
	}
	return must(w.store.Read(t.Context(), read))(t)
}

// TestReadReturnsWhatWasWritten: every column, the payload byte for byte, and nothing where there was nothing.
func TestReadReturnsWhatWasWritten(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) { checkContent(t, w, w.store) })
}

func checkContent(t *testing.T, w *world, store core.Store) {
	t.Helper()
	bare, full := outbox.NewID(), outbox.NewID()
	headers := `{"b":"2",  "a":"1"}`
	w.exec(t, `INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json) VALUES `+
		`($1, 'order_created', 'order', 'ü/1', $2)`,
		bare.String(), payload(bare))
	w.exec(t, `INSERT INTO {schema}.outbox_events (id, namespace, event_type, aggregate_type, aggregate_id, tenant_id, 
		dedupe_key, payload_json, headers, attempt_count, created_at)
		VALUES ($1, 'default', 'order_paid', 'order', 'ü/1', 'acme', 'acme/1', $2, $3, 3, '1999-12-31T23:59:58.000001Z')`,
		full.String(), payload(full), headers)
	lane := w.lane(t, "ü/1")
	answer, err := store.Read(t.Context(), core.Read{Lanes: []core.LaneRead{{Lane: lane, Limit: 10}}, MaxBytes: 1 << 20})
	if err != nil || len(answer.Events) != 2 || answer.Stopped || len(answer.Gone) != 0 {
		t.Fatalf("read %+v, %v", answer, err)
	}
	first, second := answer.Events[0], answer.Events[1]
	if age := time.Since(first.CreatedAt).Abs(); age > time.Hour || first.CreatedAt.Location() != time.UTC {
		t.Errorf("created at %s", first.CreatedAt)
	}
	aggregate := core.Aggregate{Namespace: "default", Type: "order", ID: "ü/1"}
	if first.Lane != lane || first.State != core.Ready || first.Seq != 1 || first.ID != bare ||
		first.Type != "order_created" || first.Aggregate != aggregate ||
		first.Tenant != "" || first.DedupeKey != "" || first.DueIn != 0 || first.Attempts != 0 ||
		string(first.Payload) != payload(bare) || first.Headers != nil {
		t.Errorf("read %+v", first)
	}
	if second.Seq != 2 || second.ID != full || second.Type != "order_paid" || second.Tenant != "acme" ||
		second.DedupeKey != "acme/1" || second.Attempts != 3 ||
		!second.CreatedAt.Equal(time.Date(1999, 12, 31, 23, 59, 58, 1000, time.UTC)) ||
		string(second.Payload) != payload(full) || string(second.Headers) != headers {
		t.Errorf("read %+v", second)
	}
	if cap(second.Payload) != len(second.Payload) {
		t.Error("an append to the payload would write into the headers")
	}
}

// TestReadOfLanes: lanes in the order asked for, numbers in order, each lane with its own bound and limit.
func TestReadOfLanes(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		var one, two []outbox.ID
		a, b := w.lane(t, "1"), w.lane(t, "2")
		if a == b {
			t.Fatal("choose other aggregates")
		}
		for range 5 {
			one, two = append(one, w.add(t, "1", core.Ready)), append(two, w.add(t, "2", core.Ready))
		}
		for state := core.Retrying; state <= core.Discarded; state++ {
			w.add(t, "1", state)
		}
		lanes := []core.LaneRead{{Lane: b, Limit: 2}, {Lane: a, W: 1, C: 3, Limit: 9}}
		if got, want := ids(w.read(t, core.Read{Lanes: lanes}).Events),
			append(slices.Clone(two[:2]), one[2:]...); !slices.Equal(got, want) {
			t.Errorf("read %v, want %v", got, want)
		}
		lanes[1].W = 5
		if got := ids(w.read(t, core.Read{Lanes: lanes[1:]}).Events); !slices.Equal(got, one[3:]) {
			t.Errorf("above the watermark are %v, want %v", got, one[3:])
		}
		if got := w.read(t, core.Read{}); len(got.Events) != 0 {
			t.Errorf("read %v of no lanes", got)
		}
	})
}

// TestReadOfTypes: without the types of a route that is paused.
func TestReadOfTypes(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		a, b, c := w.addType(t, "1", "a", core.Ready), w.addType(t, "1", "b", core.Ready), w.addType(t, "1", "c", core.Ready)
		lanes := []core.LaneRead{{Lane: w.lane(t, "1"), Limit: 10}}
		for _, x := range []struct {
			read core.Read
			want []outbox.ID
		}{
			{core.Read{}, []outbox.ID{a, b, c}},
			{core.Read{Exclude: []string{}}, []outbox.ID{a, b, c}},
			{core.Read{Exclude: []string{"b"}}, []outbox.ID{a, c}},
			{core.Read{Exclude: []string{"a", "x"}}, []outbox.ID{b, c}},
		} {
			x.read.Lanes = lanes
			if got := ids(w.read(t, x.read).Events); !slices.Equal(got, x.want) {
				t.Errorf("without %v: %v, want %v", x.read.Exclude, got, x.want)
			}
		}
	})
}

// TestReadStopsAtBytes: after the event with which they are reached; the connection is usable afterwards.
func TestReadStopsAtBytes(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		var all []outbox.ID
		for range 10 {
			all = append(all, w.add(t, "1", core.Ready))
		}
		read := core.Read{
			Lanes: []core.LaneRead{{Lane: w.lane(t, "1"), Limit: 100}}, Writers: []core.OpenWriter{{XID: 3, Low: 0}},
		}
		each := w.read(t, read).Events[0].Bytes()
		for _, c := range []struct{ max, want int }{{1, 1}, {each, 1}, {each + 1, 2}, {3 * each, 3}, {100 * each, 10}} {
			read.MaxBytes = c.max
			answer := w.read(t, read)
			if !slices.Equal(ids(answer.Events), all[:c.want]) || answer.Stopped != (c.want < 10) ||
				!slices.Equal(answer.Gone, []uint64{3}) {
				t.Errorf("%d bytes: %d events, stopped %v, gone %v", c.max, len(answer.Events), answer.Stopped, answer.Gone)
			}
		}
	})
}

// TestTheReadDecidesWhoIsGone: in its own snapshot. While a writer is open the read goes from the cursor;
// when one has ended, from the lowest number that it can have drawn, and not from the watermark. The same without
// some types.
func TestTheReadDecidesWhoIsGone(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		for range 5 {
			w.add(t, "1", core.Ready) // 1 to 5
		}
		early, late := w.begin(t), w.begin(t)
		w.insert(t, early, "1", "order_created") // 6
		w.add(t, "1", core.Ready)                // 7
		w.insert(t, late, "1", "order_created")  // 8
		w.add(t, "1", core.Ready)                // 9
		open := []core.OpenWriter{{XID: own(t, early, true).XID, Low: 5}, {XID: own(t, late, true).XID, Low: 7}}
		lanes := []core.LaneRead{{Lane: w.lane(t, "1"), W: 2, C: 9, Limit: 100}}
		check := func(when string, gone []uint64, want ...int64) {
			t.Helper()
			for _, without := range [][]string{nil, {"order_paid"}} {
				answer := w.read(t, core.Read{Lanes: lanes, Writers: open, Exclude: without})
				var got []int64
				for _, event := range answer.Events {
					got = append(got, event.Seq)
				}
				if !slices.Equal(got, want) || !slices.Equal(answer.Gone, gone) {
					t.Errorf("%s, without %v: read %v, gone %v, want %v and %v", when, without, got, answer.Gone, want, gone)
				}
			}
		}
		check("both open", nil)
		if err := late.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		check("the later one gone", []uint64{open[1].XID}, 9)
		if err := early.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		check("both gone", []uint64{open[0].XID, open[1].XID}, 6, 7, 9)
		lanes[0].W = 8
		check("not below the watermark", []uint64{open[0].XID, open[1].XID}, 9)
	})
}

// TestReadOfAWindow: nothing above the bound and so many numbers, wherever the bound comes from: the cursor, the
// watermark, or a writer that has ended and moved it back. What is behind is there still for the next window.
func TestReadOfAWindow(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		for range 5 {
			w.add(t, "1", core.Ready) // 1 to 5
		}
		writer := w.begin(t)
		w.insert(t, writer, "1", "order_created") // 6
		for range 6 {
			w.add(t, "1", core.Ready) // 7 to 12
		}
		w.exec(t, "UPDATE {schema}.outbox_events SET state = 6 WHERE seq = 1")
		open := []core.OpenWriter{{XID: own(t, writer, true).XID, Low: 5}}
		check := func(when string, lane core.LaneRead, want ...int64) {
			t.Helper()
			lane.Lane = w.lane(t, "1")
			for _, without := range [][]string{nil, {"order_paid"}} {
				var got []int64
				for _, event := range w.read(t, core.Read{Lanes: []core.LaneRead{lane}, Writers: open, Exclude: without}).Events {
					got = append(got, event.Seq)
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s, without %v: read %v, want %v", when, without, got, want)
				}
			}
		}
		check("all", core.LaneRead{Limit: 100}, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12)
		check("of the first", core.LaneRead{Limit: 100, Window: 3}, 2, 3)
		check("with a limit", core.LaneRead{Limit: 1, Window: 3}, 2)
		check("in which all is settled", core.LaneRead{Limit: 100, Window: 1})
		check("from the cursor", core.LaneRead{C: 8, Limit: 100, Window: 2}, 9, 10)
		check("from the watermark", core.LaneRead{W: 9, C: 8, Limit: 100, Window: 2}, 10, 11)
		check("beyond the last", core.LaneRead{C: 11, Limit: 100, Window: 50_000}, 12)
		if err := writer.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		check("the writer gone", core.LaneRead{W: 2, C: 10, Limit: 100, Window: 2}, 6, 7)
		check("the writer gone, above it", core.LaneRead{W: 6, C: 10, Limit: 100, Window: 2}, 7, 8)
		check("the writer gone, without a window", core.LaneRead{W: 2, C: 10, Limit: 100}, 6, 7, 8, 9, 10, 11, 12)
	})
}

// TestReadOfWindows: each lane has its own.
func TestReadOfWindows(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		for range 4 {
			w.add(t, "1", core.Ready)
			w.add(t, "2", core.Ready)
		}
		var got []int64
		for _, event := range w.read(t, core.Read{Lanes: []core.LaneRead{
			{Lane: w.lane(t, "1"), Limit: 9, Window: 3}, {Lane: w.lane(t, "2"), C: 2, Limit: 9, Window: 5},
		}}).Events {
			got = append(got, event.Seq)
		}
		if want := []int64{1, 3, 4, 6}; !slices.Equal(got, want) {
			t.Errorf("read %v, want %v", got, want)
		}
	})
}

// TestAStrayIsTold: an event that was written to another lane than that of its aggregate is read there, ready and held,
// and the reader says so.
func TestAStrayIsTold(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		right, wrong := w.lane(t, "1"), w.lane(t, "1")%64+1
		w.add(t, "1", core.Ready)
		stray := outbox.NewID()
		w.exec(t, `INSERT INTO {schema}.outbox_events (lane, id, event_type, aggregate_type, aggregate_id, payload_json)
			VALUES ($1, $2, 'order_created', 'order', '1', $3)`, wrong, stray.String(), payload(stray))
		for _, lane := range []int16{right, wrong} {
			events := w.read(t, core.Read{Lanes: []core.LaneRead{{Lane: lane, Limit: 9}}}).Events
			if len(events) != 1 || events[0].Lane != lane || events[0].Stray != (lane == wrong) {
				t.Fatalf("in lane %d of %d: %+v", lane, right, events)
			}
			w.move(t, events[0].ID, core.Retrying)
			held := must(w.store.HeldRows(t.Context(), core.HeldRows{
				Asks: []core.HeldAsk{{Lane: lane, Aggregate: aggregate("1"), Types: []string{"order_created"}}}, Limit: 9,
			}))(t).Events
			if len(held) != 1 || held[0].ID != events[0].ID || held[0].Stray != (lane == wrong) {
				t.Errorf("held in lane %d of %d: %+v", lane, right, held)
			}
		}
	})
}

// TestTheCursorKeepsTheOrder: the interleaving in which a cursor that is not checked publishes n+1 before n.
// Two transactions are serialised by a row; the first number is drawn before another event is read.
func TestTheCursorKeepsTheOrder(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		w.exec(t, "CREATE TABLE {schema}.orders (id int PRIMARY KEY)")
		w.exec(t, "INSERT INTO {schema}.orders VALUES (1)")
		lock := w.sql("SELECT FROM {schema}.orders WHERE id = 1 FOR UPDATE")
		a, b := w.begin(t), w.begin(t)
		if _, err := a.Exec(t.Context(), lock); err != nil {
			t.Fatal(err)
		}
		n, low := w.insert(t, a, "1", "order_created")
		w.add(t, "1", core.Ready) // of no matter which aggregate in the lane; read, the cursor stands behind it
		cursor := low + 1
		open := []core.OpenWriter{{XID: own(t, a, true).XID, Low: low - 1}}
		locked := make(chan error, 1)
		go func() {
			_, err := b.Exec(t.Context(), lock)
			locked <- err
		}()
		w.blocked(t, a.Conn().PgConn().PID(), 1)
		if err := a.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := receive(t, "the second one's lock", locked); err != nil {
			t.Fatal(err)
		}
		next, _ := w.insert(t, b, "1", "order_created")
		if err := b.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		lanes := []core.LaneRead{{Lane: w.lane(t, "1"), C: cursor, Limit: 100}}
		answer := ids(w.read(t, core.Read{Lanes: lanes, Writers: open}).Events)
		if len(answer) != 3 || answer[0] != n || answer[2] != next {
			t.Errorf("read %v, want %v first and %v last", answer, n, next)
		}
		if unchecked := ids(w.read(t, core.Read{Lanes: lanes}).Events); !slices.Equal(unchecked, []outbox.ID{next}) {
			t.Errorf("without the check %v is read: this test does not test", unchecked)
		}
	})
}

// TestSweep: ready rows at or below the floors, each in its lane.
func TestSweep(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		for range 3 {
			w.add(t, "1", core.Ready)
		}
		w.add(t, "1", core.Waiting)
		lane := w.lane(t, "1")
		for _, c := range []struct {
			floor int64
			limit int
			want  []core.Floor
		}{
			{0, 9, nil},
			{2, 9, []core.Floor{{Lane: lane, Seq: 1}, {Lane: lane, Seq: 2}}},
			{9, 2, []core.Floor{{Lane: lane, Seq: 1}, {Lane: lane, Seq: 2}}},
		} {
			got := must(w.store.Sweep(t.Context(), core.Sweep{
				Floors: []core.Floor{{Lane: lane, Seq: c.floor}, {Lane: lane%64 + 1, Seq: 99}}, Limit: c.limit,
			}))(t).Found
			if !slices.Equal(got, c.want) {
				t.Errorf("at or below %d: %v, want %v", c.floor, got, c.want)
			}
		}
	})
}

// TestAStaleOwnerReadsNothing: a relay that has lost a lane without knowing it would take what the new owner
// has left ready for all there is, and publish it before what the new owner holds.
func TestAStaleOwnerReadsNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		w.add(t, "1", core.Ready)
		mine := w.add(t, "2", core.Ready)
		stale := w.hold(t, "1", "2")
		lost, kept := stale.lane(), stale.lanes()[1]
		if err := w.store.Release(t.Context(), core.Release{
			Owner: stale.Owner, Lanes: []core.Progress{stale.at(lost, 0)},
		}); err != nil {
			t.Fatal(err)
		}
		w.hold(t, "1")
		check := func(when string, lost []int16, want ...outbox.ID) {
			t.Helper()
			for _, exclude := range [][]string{nil, {"x"}} {
				answer := w.read(t, core.Read{
					Owner: stale.Owner, Lanes: []core.LaneRead{{Lane: stale.lane(), Limit: 9}, {Lane: kept, Limit: 9}},
					Exclude: exclude,
				})
				slices.Sort(answer.Lost)
				if got := ids(answer.Events); !slices.Equal(got, want) || !slices.Equal(answer.Lost, lost) {
					t.Errorf("%s: read %v and lost %v, want %v and %v", when, got, answer.Lost, want, lost)
				}
			}
		}
		check("one lane given away", []int16{lost}, mine)
		w.expire(t, stale.Owner)
		check("expired, and not ended", []int16{lost}, mine)
		w.end(t, stale.Owner)
		both := []int16{lost, kept}
		slices.Sort(both)
		check("ended", both)
		stale.Owner = w.register(t)
		check("registered anew", both)
	})
}
