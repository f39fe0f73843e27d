package googlepubsub_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/redis/go-redis/v9"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/inbox/redisinbox"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/proxy"
	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
	"github.com/posthaste-dev/posthaste/test/kit/server"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

// records is a log.
type records struct{ server.Output }

func (r *records) logger() *slog.Logger { return slog.New(slog.NewJSONHandler(r, nil)) }

func (r *records) has(text string) bool {
	return strings.Contains(r.String(), text)
}

// Pub/Sub is killed while events come, twice: every event has its effect, once.
func TestPubSubIsKilled(t *testing.T) {
	t.Parallel()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	emulator, faults, err := server.NewEmulator(t.TempDir(), executable)
	if err != nil {
		t.Fatal(err)
	}
	if err := emulator.Start(testContext(t)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(emulator.Close)
	w, db := &env{faults: faults, client: newClient(t, emulator.Address)}, newEffects(t)
	w.createTopic(t, orders)
	w.createTopic(t, dead)
	w.createSubscription(t, recommended())
	stop := w.run(t, w.consumer(t, consumer.Config{}, consumer.On(placed, db.handle)), googlepubsub.ConsumeConfig{})

	const events = 300
	sent := make(chan int, events)
	go func() {
		defer close(sent)
		for number := range events {
			w.publish(t, newMessage(fmt.Sprint(number%20), number))
			sent <- number
		}
	}()
	for number := range sent {
		if number == events/3 || number == 2*events/3 {
			if err := emulator.End(os.Kill); err != nil {
				t.Fatal(err)
			}
			if err := emulator.Start(testContext(t)); err != nil {
				t.Fatal(err)
			}
		}
	}
	eventually.True(t, "all effects", func() bool {
		return db.Count(t, "SELECT count(DISTINCT event_id) FROM {schema}.effects") >= events
	})
	// What was acknowledged when Pub/Sub died comes again.
	eventually.True(t, "all are acknowledged", func() bool { return w.waiting(t) == 0 })
	stop()
	db.wantOnce(t, events)
	w.wantLeft(t, 0)
}

// What Pub/Sub refuses is waited for, whatever it is.
func TestRejectionsAreWaitedFor(t *testing.T) {
	t.Parallel()
	for _, code := range []string{
		"PERMISSION_DENIED", "UNAUTHENTICATED", "RESOURCE_EXHAUSTED", "UNAVAILABLE", "FAILED_PRECONDITION", "UNKNOWN",
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			w, log := newEnv(t, recommended()), &records{}
			w.inject(t, pubsubemulator.Fault{Kind: pubsubemulator.KindError, Code: code, Method: "StreamingPull", Count: 2})
			stop := w.run(t, w.consumer(t, consumer.Config{Logger: log.logger()}, consumer.On(placed, failing("", nil))),
				googlepubsub.ConsumeConfig{})
			w.publish(t, newMessage("a", 1))
			eventually.True(t, "it is handled", func() bool { return w.outcomes.count(consumer.Handled, "a") == 1 })
			stop()
			if code == "PERMISSION_DENIED" && !log.has("roles/pubsub.subscriber") {
				t.Error("the log does not say what to do")
			}
			w.wantLeft(t, 0)
		})
	}
}

func TestAMissingSubscriptionIsWaitedFor(t *testing.T) {
	t.Parallel()
	w, log := newEnv(t, nil), &records{}
	stop := w.run(t, w.consumer(t, consumer.Config{Logger: log.logger()}, consumer.On(placed, failing("", nil))),
		googlepubsub.ConsumeConfig{})
	eventually.True(t, "the log says so", func() bool { return log.has("create the subscription") })
	w.createSubscription(t, recommended())
	w.publish(t, newMessage("a", 1))
	eventually.True(t, "an event is handled", func() bool { return w.outcomes.count(consumer.Handled, "a") == 1 })

	// Deleted and made anew while the loop runs.
	if err := w.client.SubscriptionAdminClient.DeleteSubscription(testContext(t),
		&pb.DeleteSubscriptionRequest{Subscription: subscriptionName(name)}); err != nil {
		t.Fatal(err)
	}
	w.createSubscription(t, recommended())
	w.publish(t, newMessage("b", 1))
	eventually.True(t, "another event is handled", func() bool { return w.outcomes.count(consumer.Handled, "b") == 1 })
	stop()
}

// The handlers' own database is away for longer than any number of attempts: nothing becomes a dead letter.
func TestAnOutageOfTheHandlersDatabase(t *testing.T) {
	t.Parallel()
	const attempts = 2 // the pauses grow from one to the next
	subscription := recommended()
	subscription.DeadLetterPolicy.MaxDeliveryAttempts = attempts
	w, db := newEnv(t, subscription), newEffects(t)
	middleman := proxy.New(t, db.URL)
	middleman.Block()
	away := effects{&pgtest.DB{Server: db.Server, Schema: db.Schema}}
	away.Pool = away.Open(t, middleman.Through(t, db.URL), "search_path", "")
	stop := w.run(t, w.consumer(t, consumer.Config{MaxAttempts: attempts}, consumer.On(placed, away.handle)),
		googlepubsub.ConsumeConfig{})
	const events = 8
	for number := range events {
		w.publish(t, newMessage(fmt.Sprint(number), number))
	}
	eventually.True(t, "the handlers fail again and again", func() bool {
		return w.outcomes.count(consumer.Delayed, "")+w.outcomes.count(consumer.Failed, "") > attempts*events
	})
	middleman.Heal()
	eventually.True(t, "all effects", func() bool {
		return db.Count(t, "SELECT count(*) FROM {schema}.effects") >= events
	})
	stop()
	db.wantOnce(t, events)
	w.wantLeft(t, 0)
}

// While another delivery is being handled, this one waits and is not acknowledged: if the other one's process dies,
// this one is what is left (fault I3).
func TestFaultI3HeldIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: services.Redis(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	guard, err := redisinbox.New(client, redisinbox.Config{
		Prefix: pgtest.NewName("test"), Hold: time.Minute, Keep: 10 * time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	w := newEnv(t, recommended())
	message := newMessage("a", 1)
	id, err := outbox.ParseID(message.GetAttributes()["event_id"])
	if err != nil {
		t.Fatal(err)
	}
	held, letGo, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = guard.Do(context.Background(), name, id, func(context.Context) error {
			close(held)
			<-letGo
			return errBroken
		})
	}()
	eventually.Receive(t, "another one holds the event", held)
	stop := w.run(t, w.consumer(t, consumer.Config{Middleware: []consumer.Middleware{guard.Once}},
		consumer.On(placed, failing("", nil))), googlepubsub.ConsumeConfig{})
	w.publish(t, message)
	eventually.True(t, "it is delayed more often than it may be delivered", func() bool {
		return w.outcomes.count(consumer.Delayed, "a") > 5
	})
	if n := w.outcomes.count(consumer.Handled, "a") + w.outcomes.count(consumer.Duplicate, "a"); n > 0 {
		t.Error("it was acknowledged while another one held it")
	}
	close(letGo)
	eventually.Receive(t, "the other one has failed", ended)
	eventually.True(t, "it is handled here", func() bool { return w.outcomes.count(consumer.Handled, "a") == 1 })
	stop()
	w.wantLeft(t, 0)
}
