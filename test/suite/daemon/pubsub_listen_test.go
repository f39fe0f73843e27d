package daemon

import (
	"context"
	"errors"
	"testing"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/iterator"

	"github.com/posthaste-dev/posthaste/daemon/pubsubbroker"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/port"
	"github.com/posthaste-dev/posthaste/test/kit/pubsubtest"
)

// TestListenTakesNothingAway: who listens sees what comes, in order, and leaves no subscription behind.
func TestListenTakesNothingAway(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	defer cancel()
	server, client := pubsubtest.Start(t, "orders")
	environ := []string{"POSTHASTE_PUBSUB_PROJECT=p", "POSTHASTE_PUBSUB_ENDPOINT=" + server.Addr()}
	publisher := client.Publisher("orders")
	publisher.EnableMessageOrdering = true
	defer publisher.Stop()
	ready := func() {
		for _, body := range []string{"first", "second", "third"} {
			publisher.Publish(ctx, &pubsub.Message{
				Data: []byte(body), OrderingKey: "k", Attributes: map[string]string{"event_type": "order_created"},
			})
		}
		publisher.Flush()
	}
	var got []string
	if err := pubsubbroker.Listen(ctx, environ, false, "orders", ready, func(m pubsubbroker.Received) bool {
		if m.Attributes["event_type"] != "order_created" || m.At.IsZero() {
			t.Errorf("got %+v", m)
		}
		got = append(got, string(m.Body))
		return len(got) < 2
	}); err != nil || len(got) != 2 || got[0] != "first" || got[1] != "second" {
		t.Errorf("got %q, %v", got, err)
	}
	interrupted, stop := context.WithCancel(ctx)
	defer stop()
	if err := pubsubbroker.Listen(interrupted, environ, false, "orders", stop, func(pubsubbroker.Received) bool {
		return true
	}); err != nil {
		t.Errorf("an interrupt: %v", err)
	}
	left := client.SubscriptionAdminClient.ListSubscriptions(ctx,
		&pubsubpb.ListSubscriptionsRequest{Project: "projects/p"})
	if subscription, err := left.Next(); !errors.Is(err, iterator.Done) {
		t.Errorf("it leaves %v behind, %v", subscription, err)
	}
}

// TestListenSaysWhatIsMissing: the topic, or the whole service.
func TestListenSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	defer cancel()
	server, _ := pubsubtest.Start(t, "orders")
	never := func(pubsubbroker.Received) bool { return false }
	project := "POSTHASTE_PUBSUB_PROJECT=p"
	err := pubsubbroker.Listen(ctx, []string{project, "POSTHASTE_PUBSUB_ENDPOINT=" + server.Addr()}, false,
		"nothing", func() {}, never)
	if !errors.Is(err, pubsubbroker.ErrNoTopic) {
		t.Errorf("no topic: %v", err)
	}
	nobody, err := port.Address()
	if err != nil {
		t.Fatal(err)
	}
	err = pubsubbroker.Listen(ctx, []string{project, "POSTHASTE_PUBSUB_ENDPOINT=" + nobody}, false,
		"orders", func() {}, never)
	if !errors.Is(err, pubsubbroker.ErrNoService) {
		t.Errorf("no service: %v", err)
	}
}
