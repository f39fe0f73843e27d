package check_test

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"

	"github.com/posthaste-dev/posthaste/internal/check"
)

// feed gives the checker a run without faults: a transaction, three steps, a delivery and a row an event.
func feed(c *check.Checker, events int) {
	relay := check.Step{Relay: "r", Token: "k", At: 1}
	step := func(s check.Step) {
		s.Relay, s.Token, s.At = relay.Relay, relay.Token, relay.At
		c.Add(check.Record{Step: &s})
	}
	step(check.Step{Do: check.Acquire, Until: 100})
	for i := range events {
		var id check.ID
		binary.BigEndian.PutUint64(id[8:], uint64(i)+1)
		e := check.Event{
			ID: id, Topic: "t", Aggregate: fmt.Sprintf("default/order/%d", i%(events/20+1)), Version: uint64(i + 1),
			Payload: check.Sum{byte(i)},
		}
		c.Add(check.Record{Tx: &check.Tx{Key: fmt.Sprint(i), Events: []check.Event{e}}})
		c.Add(check.Record{Tx: &check.Tx{Key: fmt.Sprint(i), Outcome: check.OK}})
		step(check.Step{Do: check.Publish, ID: id})
		c.Add(check.Record{Delivery: &check.Delivery{Index: uint64(i) + 1, ID: id, Topic: "t", Payload: check.Sum{byte(i)}}})
		step(check.Step{Do: check.Ack, ID: id})
		step(check.Step{Do: check.Settle, ID: id, Result: check.Applied, To: check.Published})
		c.Add(check.Record{Row: &check.Row{ID: id, Seq: int64(i), State: check.Published, Published: true}})
	}
	c.Add(check.Record{End: &check.End{Drained: true, Dumped: true}})
}

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// Two million events must fit beside the servers that are tested.
//
//nolint:paralleltest // it measures the memory of the whole process
func TestBytesPerEvent(t *testing.T) {
	const events, most = 200_000, 200
	before := heap()
	c := check.New()
	feed(c, events)
	perEvent := int(heap()-before) / events
	v := c.Verdict(check.Floor{Committed: events, OrderedAggregates: 1_000})
	if !v.Pass() {
		report(t, v)
	}
	t.Logf("events=%d bytes_per_event=%d", events, perEvent)
	if perEvent > most {
		t.Errorf("%d bytes an event, at most %d", perEvent, most)
	}
}

// BenchmarkChecker is the whole way of an event through the checker.
func BenchmarkChecker(b *testing.B) {
	b.ReportAllocs()
	c := check.New()
	feed(c, b.N)
	if v := c.Verdict(check.Floor{}); !v.Pass() {
		b.Fatal(v.Line())
	}
}
