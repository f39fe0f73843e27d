package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/daemon/pubsubbroker"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
)

// openPubSub opens the broker as a daemon does.
func openPubSub(t *testing.T, e *emulator, deadline time.Duration, environ ...string) *daemon.Connection {
	t.Helper()
	broker := pubsubbroker.New()
	values, err := config.Set{Prefix: "POSTHASTE_", Keys: broker.Keys}.Load(nil,
		append(environ, "POSTHASTE_PUBSUB_PROJECT="+project, "POSTHASTE_PUBSUB_ENDPOINT="+e.address))
	if err != nil {
		t.Fatal(err)
	}
	connection, err := broker.Open(t.Context(), values, daemon.Options{
		Deadline: deadline, Logger: slog.New(slog.DiscardHandler), Topics: []string{"orders"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := connection.Close(); err != nil {
			t.Error(err)
		}
	})
	return connection
}

// One connection of four leads nowhere: every fourth request gets no answer. That is nobody's fault, and all of the
// events pass on the others.
func TestAConnectionToPubSubThatLeadsNowhere(t *testing.T) {
	t.Parallel()
	e := newEmulator(t, "orders")
	publisher := openPubSub(t, e, time.Second).Publisher
	fault := pubsubemulator.Fault{Kind: pubsubemulator.KindBlackHole, Count: 1}
	if err := e.server.Inject(fault); err != nil {
		t.Fatal(err)
	}
	var failed atomic.Int64
	var group sync.WaitGroup
	for i := range 40 {
		group.Go(func() {
			message := &publish.Message{
				ID: outbox.NewID(), Topic: "orders", Key: fmt.Sprint("order/", i), Seq: int64(i), Body: []byte("{}"),
			}
			err := eventually.Works(t.Context(), func() error {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				err := publisher.Publish(ctx, message)
				if class := publish.ClassOf(err); err != nil {
					failed.Add(1)
					if class != publish.TopicFault && class != publish.NotSent {
						t.Errorf("class %s: %v", class, err)
					}
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if failed.Load() == 0 {
		t.Error("nothing failed, so nothing was shown")
	}
	if arrived := len(e.messages()); arrived < 40 {
		t.Errorf("%d events arrived", arrived)
	}
}

// A topic that is missing is a reason not to be ready where there is no other one, and until it is there.
func TestReadyWhenTheTopicIsThere(t *testing.T) {
	t.Parallel()
	e := newEmulator(t)
	connection := openPubSub(t, e, 10*time.Second)
	if err := connection.Ready(t.Context()); err == nil {
		t.Error("ready without a topic")
	}
	e.create("orders")
	if err := eventually.Works(t.Context(), func() error { return connection.Ready(t.Context()) }); err != nil {
		t.Error(err)
	}
}
