package check_test

import (
	"testing"

	"github.com/posthaste-dev/posthaste/internal/check"
)

// A publish that was on its way when answers got lost may have been accepted, and no other.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	began := did(1, check.Step{Do: check.Publish, At: 10})
	failedWith := func(class check.Class) check.Record {
		return did(1, check.Step{Do: check.PublishFailed, Class: class, At: 20})
	}
	twice := func(records ...check.Record) check.History {
		return append(check.History{wrote(1, 2), delivery(1, 1), delivery(2, 1), delivery(3, 2), end()}, records...)
	}
	down := func(kind check.FaultKind, since, from, to int64) check.Record {
		return fault(check.Fault{Kind: kind, Since: since, From: from, To: to})
	}
	restart := func(since, from, to int64) check.Record { return down(check.BrokerRestart, since, from, to) }
	testAll(t, []definition{
		{
			name: "the broker was killed meanwhile", count: check.DuplicatesUnexplained,
			bad:  twice(began, failedWith(check.OfTopic)),
			good: twice(began, failedWith(check.OfTopic), restart(14, 15, 30)),
		},
		{
			name: "behind one that failed when the broker was killed", count: check.DuplicatesUnexplained,
			bad:  twice(began, failedWith(check.Shutdown), restart(21, 22, 30)),
			good: twice(began, failedWith(check.Shutdown), restart(14, 15, 30)),
		},
		{
			name: "the broker was down when it began", count: check.DuplicatesUnexplained,
			bad:  twice(began, failedWith(check.OfTopic), restart(8, 9, 30)),
			good: twice(began, failedWith(check.OfTopic), restart(9, 10, 30)),
		},
		{
			name: "the broker was killed afterwards", count: check.DuplicatesUnexplained,
			bad:  twice(began, failedWith(check.OfTopic), restart(21, 22, 30)),
			good: twice(began, failedWith(check.OfTopic), restart(20, 22, 30)),
		},
		{
			name: "the broker said no", count: check.DuplicatesUnexplained,
			bad:  twice(began, failedWith(check.OfEvent), restart(14, 15, 30)),
			good: twice(began, failedWith(check.OfTopic), restart(14, 15, 30)),
		},
		{
			name: "a fault that loses no answers", count: check.DuplicatesUnexplained,
			bad:  twice(began, failedWith(check.OfTopic), down(check.BrokerDown, 0, 15, 30)),
			good: twice(began, failedWith(check.OfTopic), down(check.BrokerCut, 0, 15, 15)),
		},
		{
			name: "answers were dropped for a while", count: check.DuplicatesUnexplained,
			bad:  twice(began, failedWith(check.OfTopic), down(check.AnswersDropped, 0, 2, 9)),
			good: twice(began, failedWith(check.OfTopic), down(check.AnswersDropped, 0, 2, 10)),
		},
		{
			name: "answers of another topic were dropped", count: check.DuplicatesUnexplained,
			bad: twice(began, failedWith(check.OfTopic),
				fault(check.Fault{Kind: check.AnswersDropped, Topic: "u", From: 2, To: 30})),
			good: twice(began, failedWith(check.OfTopic),
				fault(check.Fault{Kind: check.AnswersDropped, Topic: "t", From: 2, To: 30})),
		},
		{
			name: "another relay's connection stood still", count: check.DuplicatesUnexplained,
			bad: twice(began, failedWith(check.OfTopic),
				fault(check.Fault{Kind: check.BrokerStalled, Relay: "other", From: 2, To: 30})),
			good: twice(began, failedWith(check.OfTopic),
				fault(check.Fault{Kind: check.BrokerStalled, Relay: "r", From: 2, To: 30})),
		},
		{
			name: "it never left the relay", count: check.DuplicatesUnexplained,
			bad:  twice(failedWith(check.OfTopic), restart(14, 15, 30), publish(1), ack(1)),
			good: twice(began, failedWith(check.OfTopic), restart(14, 15, 30), publish(1), ack(1)),
		},
		{
			name: "two duplicates with one lost answer", count: check.DuplicatesUnexplained,
			bad: append(twice(began, failedWith(check.OfTopic), restart(14, 15, 30)), delivery(4, 1)),
			good: append(twice(began, failedWith(check.OfTopic), restart(14, 15, 30), began, failedWith(check.OfTopic)),
				delivery(4, 1)),
		},
		{
			name: "charged while the broker was down", count: check.ChargedWrongly,
			bad: twice(began, failedWith(check.InDoubt), did(1, check.Step{Do: check.Charge, Class: check.InDoubt, At: 20}),
				restart(4, 5, 30)),
			good: twice(began, failedWith(check.InDoubt), did(1, check.Step{Do: check.Charge, Class: check.InDoubt, At: 20}),
				restart(9, 11, 30)),
		},
	})
}

// What was handed over behind a publish in doubt may have been accepted with it, where that is how publishes go.
func TestBehindDoubt(t *testing.T) {
	t.Parallel()
	twice := func(records ...check.Record) check.History {
		return append(check.History{
			wrote(1, 2), delivery(1, 1), delivery(2, 2), delivery(3, 2),
			ended(check.End{Drained: true, Pipelined: []string{"t"}}),
		}, records...)
	}
	both := []check.Record{publish(1), publish(2), publishFailed(1, check.InDoubt), publishFailed(2, check.Shutdown)}
	testAll(t, []definition{
		{
			name: "it began after the doubt", count: check.DuplicatesUnexplained,
			bad:  twice(publish(1), publishFailed(1, check.InDoubt), publish(2), publishFailed(2, check.Shutdown)),
			good: twice(both...),
		},
		{
			name: "the one ahead was refused", count: check.DuplicatesUnexplained,
			bad:  twice(publish(1), publish(2), publishFailed(1, check.OfEvent), publishFailed(2, check.Shutdown)),
			good: twice(both...),
		},
		{
			name: "it was refused itself", count: check.DuplicatesUnexplained,
			bad:  twice(publish(1), publish(2), publishFailed(1, check.InDoubt), publishFailed(2, check.OfEvent)),
			good: twice(both...),
		},
	})
}

// Some publishers say of an outcome that nobody knows that it is the topic's fault, and of what was behind it that it
// was not sent.
func TestDoubtfulTopics(t *testing.T) {
	t.Parallel()
	twice := func(doubtful string, class check.Class) check.History {
		return check.History{
			wrote(1, 2), delivery(1, 1), delivery(2, 1), delivery(3, 2),
			ended(check.End{Drained: true, Doubtful: []string{doubtful}}), publish(1), publishFailed(1, class),
		}
	}
	testAll(t, []definition{
		{
			name: "of another topic", count: check.DuplicatesUnexplained,
			bad: twice("u", check.OfTopic), good: twice("t", check.OfTopic),
		},
		{
			name: "refused", count: check.DuplicatesUnexplained,
			bad: twice("t", check.OfEvent), good: twice("t", check.Shutdown),
		},
	})
}
