package check_test

import (
	"testing"

	"github.com/posthaste-dev/posthaste/internal/check"
)

func TestDuplicates(t *testing.T) {
	t.Parallel()
	twice := func(records ...check.Record) check.History {
		return append(check.History{wrote(1), delivery(1, 1), delivery(2, 1), end()}, records...)
	}
	published := settle(1, check.Published, check.Applied)
	testAll(t, []definition{
		{
			name: "nothing happened", count: check.DuplicatesUnexplained, bad: twice(),
			good: twice(fault(check.Fault{Kind: check.Kill, Relay: "r"})),
		},
		{
			name: "the fault was over before the first delivery", count: check.DuplicatesUnexplained,
			bad: check.History{
				wrote(1), delivery(5, 1), delivery(6, 1), end(), fault(check.Fault{Kind: check.Kill, First: 2, Last: 3}),
			},
			good: check.History{
				wrote(1), delivery(5, 1), delivery(6, 1), end(), fault(check.Fault{Kind: check.Kill, First: 6, Last: 6}),
			},
		},
		{
			name: "the fault came after the second delivery", count: check.DuplicatesUnexplained,
			bad:  twice(fault(check.Fault{Kind: check.Kill, First: 3, Last: 3})),
			good: twice(fault(check.Fault{Kind: check.Kill, First: 2, Last: 2})),
		},
		{
			name: "a fault of another topic", count: check.DuplicatesUnexplained,
			bad:  twice(fault(check.Fault{Kind: check.AckLost, Topic: "u"})),
			good: twice(fault(check.Fault{Kind: check.AckLost, Topic: "t"})),
		},
		{
			name: "a fault of another event", count: check.DuplicatesUnexplained,
			bad:  twice(fault(check.Fault{Kind: check.AckLost, ID: id(2)})),
			good: twice(fault(check.Fault{Kind: check.AckLost, ID: id(1)})),
		},
		{
			name: "a fault that cannot duplicate", count: check.DuplicatesUnexplained,
			bad:  twice(fault(check.Fault{Kind: check.Quota, ID: id(1)})),
			good: twice(fault(check.Fault{Kind: check.LateAccept, ID: id(1)})),
		},
		{
			name: "two duplicates with one cause", count: check.DuplicatesUnexplained,
			bad: twice(delivery(3, 1), fault(check.Fault{Kind: check.AckLost, ID: id(1)})),
			good: twice(delivery(3, 1), fault(check.Fault{Kind: check.AckLost, ID: id(1)}),
				fault(check.Fault{Kind: check.Kill})),
		},
		{
			name: "a publish in doubt", count: check.DuplicatesUnexplained,
			bad:  twice(publish(1), publishFailed(1, check.OfEvent)),
			good: twice(publish(1), publishFailed(1, check.InDoubt)),
		},
		{
			name: "a settle that failed", count: check.DuplicatesUnexplained,
			bad:  twice(publish(1), ack(1), published),
			good: twice(publish(1), ack(1), settle(1, check.Published, check.NotDone), publish(1), ack(1), published),
		},
		{
			name: "a settle that failed and was repeated", count: check.DuplicatesUnexplained,
			bad:  twice(publish(1), ack(1), settle(1, check.Published, check.Uncertain), published),
			good: twice(publish(1), ack(1), settle(1, check.Published, check.Uncertain)),
		},
		{
			name: "the row was written down as something else", count: check.DuplicatesUnexplained,
			bad: twice(publish(1), ack(1), settle(1, check.Waiting, check.Applied)),
			good: twice(publish(1), ack(1), settle(1, check.Published, check.Uncertain),
				settle(1, check.Waiting, check.Applied)),
		},
		{
			name: "a publish that was forgotten", count: check.DuplicatesUnexplained,
			bad:  twice(publish(1), ack(1), fault(check.Fault{Kind: check.Kill, Relay: "other"})),
			good: twice(publish(1), ack(1), fault(check.Fault{Kind: check.Kill, Relay: "r"})),
		},
		{
			name: "a lane that was lost", count: check.DuplicatesUnexplained,
			bad:  twice(publish(1), did(0, check.Step{Do: check.Lose, Lane: 1})),
			good: twice(publish(1), did(0, check.Step{Do: check.Lose})),
		},
		{
			name: "a publish that began after the duplicate", count: check.DuplicatesUnexplained,
			bad:  twice(did(1, check.Step{Do: check.Publish, Next: 3}), publishFailed(1, check.InDoubt)),
			good: twice(did(1, check.Step{Do: check.Publish, Next: 1}), publishFailed(1, check.InDoubt)),
		},
		{
			name: "a holder that slept and sent after its successor", count: check.DuplicatesUnexplained,
			bad: twice(
				did(1, check.Step{Do: check.Publish, Relay: "old", Token: "o", Next: 1}),
				did(1, check.Step{Do: check.PublishFailed, Relay: "old", Token: "o", Class: check.OfEvent, Next: 1}),
				did(1, check.Step{Do: check.Publish, Next: 1}), ack(1), published,
			),
			good: twice(
				did(1, check.Step{Do: check.Publish, Relay: "old", Token: "o", Next: 1}),
				did(1, check.Step{Do: check.Publish, Next: 1}), ack(1), published,
				did(1, check.Step{Do: check.Ack, Relay: "old", Token: "o", Next: 3}),
				did(1, check.Step{Do: check.Settle, Relay: "old", Token: "o", Result: check.Stale, To: check.Published, Next: 3}),
			),
		},
	})
}

// An operator's request explains one copy, and is served or canceled.
func TestRequests(t *testing.T) {
	t.Parallel()
	testAll(t, []definition{
		{
			name: "nobody asked for the copy", count: check.DuplicatesUnexplained,
			bad:  check.History{wrote(1), delivery(1, 1), copyOf(2, 1, 5), end()},
			good: check.History{wrote(1), delivery(1, 1), copyOf(2, 1, 5), request(5, 1, check.RequestDelivered), end()},
		},
		{
			name: "two copies for one request", count: check.DuplicatesUnexplained,
			bad: check.History{
				wrote(1), delivery(1, 1), copyOf(2, 1, 5), copyOf(3, 1, 5), request(5, 1, check.RequestDelivered), end(),
			},
			good: check.History{
				wrote(1), delivery(1, 1), copyOf(2, 1, 5), copyOf(3, 1, 6), request(5, 1, check.RequestDelivered),
				request(6, 1, check.RequestOpen), end(),
			},
		},
		{
			name: "delivered, says the request", count: check.RequestsUnserved,
			bad:  check.History{wrote(1), delivery(1, 1), request(5, 1, check.RequestDelivered), end()},
			good: check.History{wrote(1), delivery(1, 1), request(5, 1, check.RequestCanceled), end()},
		},
		{
			name: "open when drained", count: check.RequestsUnserved,
			bad:  check.History{wrote(1), delivery(1, 1), request(5, 1, check.RequestOpen), end()},
			good: check.History{wrote(1), delivery(1, 1), request(5, 1, check.RequestOpen), ended(check.End{})},
		},
		{
			name: "another topic than was asked for", count: check.Corrupted,
			bad:  check.History{wrote(1), delivery(1, 1), copyTo(2, 1, 5, "u"), request(5, 1, check.RequestDelivered), end()},
			good: check.History{wrote(1), delivery(1, 1), copyTo(2, 1, 5, "u"), requestTo(5, 1, "u"), end()},
		},
		{
			name: "a copy before that of a lower version", count: check.CopiesOutOfOrder,
			bad: check.History{
				wrote(1), wrote(2), delivery(1, 1), delivery(2, 2), copyOf(3, 2, 6), copyOf(4, 1, 5),
				request(5, 1, check.RequestDelivered), request(6, 2, check.RequestDelivered), end(),
			},
			good: check.History{ // nobody waits for one that failed
				wrote(1), wrote(2), delivery(1, 1), delivery(2, 2), copyOf(3, 2, 6), copyOf(4, 1, 5),
				request(5, 1, check.RequestFailed), request(6, 2, check.RequestDelivered), end(),
			},
		},
		{
			name: "sent after it was canceled", count: check.SentAfterCancel,
			bad:  canceled(3, 4),
			good: canceled(3, 3),
		},
	})
}

func copyTo(index uint64, n byte, request int64, topic string) check.Record {
	r := copyOf(index, n, request)
	r.Delivery.Topic = topic
	return r
}

func requestTo(number int64, n byte, topic string) check.Record {
	r := request(number, n, check.RequestDelivered)
	r.Request.Topic = topic
	return r
}

// canceled is a request that was canceled before the delivery at, and sent before the delivery sent.
func canceled(at, sent uint64) check.History {
	r := request(5, 1, check.RequestCanceled)
	r.Request.Canceled = at
	return check.History{
		wrote(1), delivery(1, 1), did(1, check.Step{Do: check.Publish, Request: 5, Next: sent}),
		did(1, check.Step{Do: check.Ack, Request: 5, Next: sent + 1}), copyOf(sent, 1, 5),
		did(1, check.Step{Do: check.Settle, Request: 5, To: check.Published, Result: check.Applied}), r, end(),
	}
}

func TestCharges(t *testing.T) {
	t.Parallel()
	charged := func(class check.Class) check.Record {
		return did(1, check.Step{Do: check.Charge, Class: class, At: 20})
	}
	began := did(1, check.Step{Do: check.Publish, At: 10})
	attempts := row(1, check.Published)
	attempts.Row.Attempts = 1
	with := func(records ...check.Record) check.History {
		return append(check.History{wrote(1), delivery(1, 1), end()}, records...)
	}
	down := func(from, to int64) check.Record {
		return fault(check.Fault{Kind: check.BrokerDown, Topic: "t", From: from, To: to})
	}
	definitions := []definition{
		{
			name: "in doubt while the topic failed", count: check.ChargedWrongly,
			bad:  with(began, publishFailed(1, check.InDoubt), charged(check.InDoubt), down(5, 25)),
			good: with(began, publishFailed(1, check.InDoubt), charged(check.InDoubt), down(15, 25)),
		},
		{
			name: "refused while the topic failed", count: check.ChargedWrongly,
			bad:  with(began, publishFailed(1, check.OfEvent), charged(check.OfEvent), down(5, 0)),
			good: with(began, publishFailed(1, check.OfEvent), charged(check.OfEvent), down(5, 15)),
		},
		{
			name: "attempts without a failure", count: check.ChargedWrongly, bad: with(publish(1), ack(1), attempts),
			good: with(publish(1), publishFailed(1, check.OfEvent), attempts),
		},
		{
			name: "attempts for the topic's failure", count: check.ChargedWrongly,
			bad:  with(publish(1), publishFailed(1, check.OfTopic), attempts),
			good: with(publish(1), publishFailed(1, check.InDoubt), attempts),
		},
		{
			name: "attempts for a broken contract", count: check.ChargedWrongly,
			bad:  with(publish(1), publishFailed(1, check.Broken), attempts),
			good: with(publish(1), publishFailed(1, check.Terminal), attempts),
		},
	}
	for _, class := range []check.Class{
		check.Broken, check.OfTopic, check.Crash, check.Shutdown, check.LostLease, check.NotKnown,
	} {
		definitions = append(definitions, definition{
			name: string(class), count: check.ChargedWrongly, bad: with(charged(class)), good: with(charged(check.OfEvent)),
		})
	}
	testAll(t, definitions)
}

func TestLeases(t *testing.T) {
	t.Parallel()
	lane := func(do check.Do, relay string, at, until int64) check.Record {
		return check.Record{Step: &check.Step{Do: do, Relay: relay, Token: "of-" + relay, At: at, Until: until}}
	}
	settledBy := func(relay, token string, at int64) check.Record {
		return did(1, check.Step{
			Do: check.Settle, Relay: relay, Token: token, At: at, Result: check.Applied, To: check.Published,
		})
	}
	with := func(records ...check.Record) check.History {
		return append(check.History{wrote(1, 2), delivery(1, 1), delivery(2, 2), end()}, records...)
	}
	testAll(t, []definition{
		{
			name: "two holders", count: check.OwnersOverlapping,
			bad:  with(lane(check.Acquire, "a", 10, 20), lane(check.Acquire, "b", 15, 25)),
			good: with(lane(check.Acquire, "a", 10, 20), lane(check.Acquire, "b", 20, 25)),
		},
		{
			name: "renewed", count: check.OwnersOverlapping,
			bad: with(lane(check.Acquire, "a", 10, 20), lane(check.Renew, "a", 15, 30), lane(check.Acquire, "b", 25, 35)),
			good: with(lane(check.Acquire, "a", 10, 20), lane(check.Renew, "a", 15, 30), lane(check.Release, "a", 24, 0),
				lane(check.Acquire, "b", 25, 35)),
		},
		{
			name: "released without an answer", count: check.OwnersOverlapping,
			bad:  with(lane(check.Acquire, "a", 10, 20), lane(check.Acquire, "b", 11, 25)),
			good: with(lane(check.Acquire, "a", 10, 20), lane(check.Release, "a", 0, 0), lane(check.Acquire, "b", 11, 25)),
		},
		{
			name: "taken away", count: check.OwnersOverlapping,
			bad: with(lane(check.Acquire, "a", 10, 20), lane(check.Acquire, "b", 15, 25),
				fault(check.Fault{Kind: check.LeaseLost, Relay: "b", From: 15, To: 15}),
				fault(check.Fault{Kind: check.LeaseLost, Relay: "a", From: 9, To: 9})),
			good: with(lane(check.Acquire, "a", 10, 20), lane(check.Acquire, "b", 15, 25),
				fault(check.Fault{Kind: check.LeaseLost, Relay: "a", From: 15, To: 15})),
		},
		{
			name: "two in flight", count: check.OwnersOverlapping, bad: with(publish(1), publish(2)),
			good: with(publish(1), ack(1), publish(2)),
		},
		{
			name: "two in flight on a topic that may", count: check.OwnersOverlapping, bad: with(publish(1), publish(2)),
			good: check.History{
				wrote(1, 2), delivery(1, 1), delivery(2, 2), publish(1), publish(2),
				ended(check.End{Drained: true, Pipelined: []string{"t"}}),
			},
		},
		{
			name: "after the lane was taken", count: check.StaleSettlesApplied,
			bad:  with(lane(check.Acquire, "a", 10, 20), lane(check.Acquire, "b", 30, 40), settledBy("a", "of-a", 35)),
			good: with(lane(check.Acquire, "a", 10, 20), lane(check.Acquire, "b", 30, 40), settledBy("a", "of-a", 29)),
		},
		{
			name: "with a token that never held it", count: check.StaleSettlesApplied,
			bad:  with(lane(check.Acquire, "a", 10, 20), settledBy("a", "other", 15)),
			good: with(lane(check.Acquire, "a", 10, 20), settledBy("a", "of-a", 15)),
		},
	})
}
