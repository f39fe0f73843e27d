package check_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/posthaste-dev/posthaste/internal/check"
)

// The words of the smallest histories. Event n is on topic "t" of aggregate "a" with version n; its bytes
// follow from n.

func id(n byte) check.ID { return check.ID{15: n} }

func bytesOf(n byte) check.Sum { return check.SumOf([]byte{n}) }

func event(n byte) check.Event {
	return check.Event{ID: id(n), Topic: "t", Aggregate: "a", Version: uint64(n), Payload: bytesOf(n)}
}

func tx(outcome check.Outcome, events ...check.Event) check.Record {
	return check.Record{Tx: &check.Tx{Key: fmt.Sprint("tx", events[0].ID, outcome), Events: events, Outcome: outcome}}
}

func wrote(numbers ...byte) check.Record {
	var events []check.Event
	for _, n := range numbers {
		events = append(events, event(n))
	}
	return tx(check.OK, events...)
}

func delivery(index uint64, n byte) check.Record {
	return check.Record{Delivery: &check.Delivery{Index: index, ID: id(n), Topic: "t", Payload: bytesOf(n)}}
}

func copyOf(index uint64, n byte, request int64) check.Record {
	r := delivery(index, n)
	r.Delivery.Request = request
	return r
}

func row(n byte, state check.State) check.Record {
	return check.Record{
		Row: &check.Row{ID: id(n), Seq: int64(n), State: state, Type: "k", Published: state == check.Published},
	}
}

func heldRow(n byte, kind check.State) check.Record {
	return check.Record{Held: &check.Held{ID: id(n), Lane: 1, Seq: int64(n), Kind: kind, Due: kind == check.Retrying}}
}

func letter(n byte, blocking bool, next uint64) check.Record {
	return check.Record{
		Letter: &check.Letter{ID: id(n), Reason: "rejected", Blocking: blocking, Payload: bytesOf(n), Next: next},
	}
}

func action(n byte, verb check.Verb, next uint64) check.Record {
	return check.Record{Action: &check.Action{ID: id(n), Verb: verb, Actor: "ada", Next: next}}
}

func change(n byte, from, to check.State) check.Record {
	return check.Record{Change: &check.Change{ID: id(n), From: from, To: to}}
}

func fault(f check.Fault) check.Record { return check.Record{Fault: &f} }

func request(number int64, n byte, end check.RequestEnd) check.Record {
	return check.Record{Request: &check.Request{Request: number, ID: id(n), End: end}}
}

func effect(n byte, count int) check.Record {
	return check.Record{Effect: &check.Effect{ID: id(n), Count: count}}
}

// did is a step of relay r with token k on lane 0.
func did(n byte, s check.Step) check.Record {
	s.ID = id(n)
	if s.Relay == "" {
		s.Relay, s.Token = "r", "k"
	}
	return check.Record{Step: &s}
}

func publish(n byte) check.Record { return did(n, check.Step{Do: check.Publish}) }
func ack(n byte) check.Record     { return did(n, check.Step{Do: check.Ack}) }
func publishFailed(n byte, class check.Class) check.Record {
	return did(n, check.Step{Do: check.PublishFailed, Class: class})
}

func settle(n byte, to check.State, result check.Result) check.Record {
	return did(n, check.Step{Do: check.Settle, To: to, Result: result})
}

func end() check.Record { return check.Record{End: &check.End{Drained: true}} }

func ended(e check.End) check.Record { return check.Record{End: &e} }

// definition is the smallest history that one counter counts, and one beside it that it does not.
type definition struct {
	name  string
	count check.Counter
	also  []check.Counter // counters that follow from the same fault
	bad   check.History
	good  check.History
}

func (d definition) test(t *testing.T) {
	t.Parallel()
	v := d.bad.Check(check.Floor{Undrained: true})
	for _, c := range check.Counters() {
		if !c.MustBeZero() || slices.Contains(d.also, c) {
			continue
		}
		want := 0
		if c == d.count {
			want = 1
		}
		if got := v.Count(c); got != want {
			t.Errorf("the bad history has %s=%d, want %d", c, got, want)
			report(t, v)
		}
	}
	for _, c := range d.also {
		if v.Count(c) == 0 {
			t.Errorf("the bad history has no %s", c)
		}
	}
	if v.Pass() {
		t.Error("the bad history passes")
	}
	if v := d.good.Check(check.Floor{Undrained: true}); !v.Pass() {
		t.Error("the good history does not pass")
		report(t, v)
	}
}

func testAll(t *testing.T, definitions []definition) {
	t.Helper()
	for _, d := range definitions {
		t.Run(d.count.String()+"/"+d.name, d.test)
	}
}
