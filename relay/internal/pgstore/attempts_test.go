package pgstore_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// TestAttempts: a settle that counts or delays an event tells of the publish that failed, once, however often it is
// sent. The first 5 and the last 15 are kept. What is published, or was never sent, has none.
func TestAttempts(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		held := w.hold(t, "1")
		id, other := w.add(t, "1", core.Ready), w.add(t, "1", core.Ready)
		var last *core.Settle
		for n := range 30 {
			last = &core.Settle{Owner: held.Owner, Lanes: held.lanes(), Retry: []core.Retry{{
				Found: w.found(t, id), Error: "no " + strconv.Itoa(n+1),
				Tried: core.Tried{Class: core.Rejected, Topic: "orders"},
			}}}
			if n == 29 {
				last.Retry[0].Tried.Class = core.Unknown
			}
			w.settle(t, last)
			if n == 19 {
				if kept := w.rows(t, "SELECT number FROM {schema}.outbox_attempts"); len(kept) != 20 {
					t.Errorf("%d of 20 are kept", len(kept))
				}
			}
		}
		w.settle(t, last) // once more, because its answer was lost
		got := w.rows(t, "SELECT number, class, topic, error FROM {schema}.outbox_attempts ORDER BY number")
		var want []string
		for n := 1; n <= 30; n++ {
			if n <= 5 || n > 15 {
				want = append(want, "("+strconv.Itoa(n)+`,rejected,orders,"no `+strconv.Itoa(n)+`")`)
			}
		}
		want[len(want)-1] = `(30,unknown,orders,"no 30")`
		if !slices.Equal(got, want) {
			t.Errorf("got %q\nwant %q", got, want)
		}
		if by := w.rows(t, "SELECT DISTINCT relay, event_id FROM {schema}.outbox_attempts"); len(by) != 1 ||
			by[0] != "("+held.Relay.String()+","+id.String()+")" {
			t.Errorf("by %q", by)
		}
		// Dead at once, and dead without having been sent; published together with them, and alone.
		w.settle(t, &core.Settle{Owner: held.Owner, Lanes: held.lanes(), Published: []core.Found{w.found(t, id)}})
		published := []core.Found{w.found(t, w.add(t, "1", core.Ready))}
		w.settle(t, &core.Settle{Owner: held.Owner, Lanes: held.lanes(), Published: published, Dead: []core.Death{
			{Found: w.found(t, other), Attempts: 1, Reason: "rejected", Tried: core.Tried{Class: core.Terminal, Topic: "bills"}},
			{Found: w.found(t, w.add(t, "1", core.Ready)), Reason: "invalid_payload", Detail: "no brace"},
		}, Park: []core.Park{{Found: w.found(t, w.add(t, "1", core.Ready)), Error: "not known"}}})
		if got := w.rows(t, "SELECT number, class, topic, error FROM {schema}.outbox_attempts WHERE event_id <> '"+
			id.String()+"'"); !slices.Equal(got, []string{"(1,terminal,bills,rejected)"}) {
			t.Errorf("of the others: %q", got)
		}
	})
}
