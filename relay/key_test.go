package relay

import (
	"testing"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// Two aggregates never share a key, whatever their ids are made of: a broker would keep the one waiting for the other,
// and a consumer take the one's events for the other's.
func TestKeysOfDifferentAggregatesDiffer(t *testing.T) {
	t.Parallel()
	names := []string{"default", "order", "o", "order.order", "a-b"}
	ids := []string{"7", "/", "//", "order/7", "order/order/7", "default/order/7", "%2F", "%", "a%2Fb", "a/b", " ", "7/"}
	met := map[string]core.Aggregate{}
	for _, namespace := range names {
		for _, id := range ids {
			aggregate := core.Aggregate{Namespace: namespace, Type: "order", ID: id}
			message, failure := newTestSender(t, quiet).message(stored(func(e *core.Event) { e.Aggregate = aggregate }))
			if failure != nil {
				t.Fatalf("%+v: %+v", aggregate, failure)
			}
			if other, is := met[message.Key]; is {
				t.Errorf("%q is the key of %+v and of %+v", message.Key, other, aggregate)
			}
			met[message.Key] = aggregate
		}
	}
}
