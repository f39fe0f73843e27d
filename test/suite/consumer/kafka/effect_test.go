package kafka_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/broker/kafka"
	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/inbox"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// effects is a schema with an inbox, and a table on which nothing keeps an effect from happening twice.
func effects(t *testing.T) *pgtest.DB {
	t.Helper()
	db := pgtest.New(t, pgtest.Servers()[0])
	if err := schema.Inbox.Up(t.Context(), pgtest.OpenSQL(t, "pgx", db.URL),
		schema.Options{Schema: db.Schema}); err != nil {
		t.Fatal(err)
	}
	db.Exec(t, "CREATE TABLE {schema}.effects (at bigserial, event_id uuid NOT NULL, aggregate text NOT NULL, "+
		"n int NOT NULL)")
	return db
}

// once is a handler whose effect and mark are one transaction.
func once(schemaName, name string, event *consumer.Event, payload license) func(ctx context.Context, tx pgx.Tx) error {
	return func(ctx context.Context, tx pgx.Tx) error {
		first, err := inbox.First(ctx, outbox.InSchema(tx, schemaName), name, event.ID)
		if err != nil {
			return err
		}
		if !first {
			return consumer.ErrDuplicate
		}
		_, err = tx.Exec(ctx, "INSERT INTO "+pgx.Identifier{schemaName, "effects"}.Sanitize()+
			" (event_id, aggregate, n) VALUES ($1, $2, $3)", event.ID.String(), event.Aggregate.ID, payload.N)
		return err
	}
}

// eachOnce fails the test unless so many events had one effect each, those of an aggregate in order.
func eachOnce(t *testing.T, db *pgtest.DB, events int) {
	t.Helper()
	all, distinct := db.Count(t, "SELECT count(*) FROM {schema}.effects"),
		db.Count(t, "SELECT count(DISTINCT event_id) FROM {schema}.effects")
	if all != events || distinct != events {
		t.Errorf("%d events had %d effects, of %d events", events, all, distinct)
	}
	disordered := db.Count(t, "SELECT count(*) FROM (SELECT n, lag(n) OVER (PARTITION BY aggregate ORDER BY at) "+
		"AS before FROM {schema}.effects) AS o WHERE n < before")
	if disordered > 0 {
		t.Errorf("%d effects came behind a later one of their aggregate", disordered)
	}
}

// The child is a consumer in a process of its own, which a test may kill and freeze.
const (
	childTopic  = "KAFKA_CHILD_TOPIC"
	childSchema = "KAFKA_CHILD_SCHEMA"
	childURL    = "KAFKA_CHILD_URL"
)

// pace lets a load last long enough for something to happen in its middle.
const pace = 2 * time.Millisecond

func child() {
	ctx := context.Background()
	topic := os.Getenv(childTopic)
	pool, err := pgxpool.New(ctx, os.Getenv(childURL))
	if err == nil {
		var c *consumer.Consumer
		c, err = consumer.New(consumer.Config{Name: topic, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))},
			consumer.On(changed, func(ctx context.Context, event *consumer.Event, payload license) error {
				<-time.After(pace)
				return outbox.InTx(ctx, pool, once(os.Getenv(childSchema), topic, event, payload))
			}))
		if err == nil {
			err = kafka.Consume(ctx, cluster(), c, kafka.ConsumeConfig{
				Topics: []string{topic}, DeadLetters: topic + "-dead", SessionTimeout: shortSession, Concurrency: 2,
				CommitInterval: 100 * time.Millisecond,
			})
		}
	}
	fmt.Fprintln(os.Stderr, "the child ends:", err)
}

// startChild starts one.
func (w *env) startChild(db *pgtest.DB) *exec.Cmd {
	w.t.Helper()
	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), childTopic+"="+w.topic, childSchema+"="+db.Schema, childURL+"="+db.URL)
	program.Stderr = &w.log
	program.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := program.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _, _ = program.Process.Kill(), program.Wait() })
	return program
}

// TestFaultI12KilledAndFrozen: three processes share the partitions. One is killed in the middle, and one is frozen
// for longer than its session, so that others get what it has, and goes on. Each event has one effect, and what the
// group remembers never goes back.
func TestFaultI12KilledAndFrozen(t *testing.T) {
	t.Parallel()
	const events, aggregates = 1200, 40
	w, db := newEnv(t, 6), effects(t)
	for i := range events {
		w.emit(fmt.Sprint(i%aggregates), i)
	}
	count := func() int { return db.Count(t, "SELECT count(*) FROM {schema}.effects") }
	killed, frozen := w.startChild(db), w.startChild(db)
	eventually.True(t, "both have something to do", func() bool { return count() > events/10 })
	if err := frozen.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	latest := map[int32]int64{}
	watch := func() {
		for number, at := range w.committed() {
			if at < latest[number] {
				t.Errorf("partition %d: %d was committed, and now %d", number, latest[number], at)
			}
			latest[number] = at
		}
	}
	c := w.consumer(consumer.Config{}, func(ctx context.Context, event *consumer.Event, payload license) error {
		return outbox.InTx(ctx, db.Pool, once(db.Schema, w.name, event, payload))
	})
	w.run(c)
	eventually.True(t, "every event had its effect", func() bool { watch(); return count() >= events })
	if err := frozen.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the frozen one takes part again", func() bool {
		watch()
		about, err := w.admin.DescribeGroups(w.patient(), w.name)
		return err == nil && len(about[w.name].Members) == 2 && about[w.name].State == "Stable"
	})
	w.done()
	watch()
	eachOnce(t, db, events)
	if n := w.countLetters(); n != 0 {
		t.Errorf("%d dead letters", n)
	}
}

// TestRollingRebalances: processes come and go in an orderly way while there is load. What was handled beside a
// message that is given back comes again with it, and the inbox knows it.
func TestRollingRebalances(t *testing.T) {
	t.Parallel()
	const events, aggregates = 600, 30
	w, db := newEnv(t, 6), effects(t)
	c := w.consumer(consumer.Config{}, func(ctx context.Context, event *consumer.Event, payload license) error {
		return outbox.InTx(ctx, db.Pool, once(db.Schema, w.name, event, payload))
	})
	stops := []func(){w.run(c)}
	for i := range events {
		w.emit(fmt.Sprint(i%aggregates), i)
		switch i {
		case events / 5, 2 * events / 5:
			stops = append(stops, w.run(c))
		case 3 * events / 5:
			stops[0]()
		case 4 * events / 5:
			stops[1]()
		}
	}
	w.done()
	eachOnce(t, db, events)
}

// TestALongWaitKeepsTheMembership: a handler that delays its event for longer than the session stays a member; the
// partition is paused at MaxAhead, those of other aggregates go on, and nothing behind the event is committed.
func TestALongWaitKeepsTheMembership(t *testing.T) {
	t.Parallel()
	const ahead, events = 10, 60
	w := newEnv(t, 1)
	release := make(chan struct{})
	var stuck outbox.ID
	c := w.consumer(consumer.Config{}, func(_ context.Context, event *consumer.Event, _ license) error {
		if event.ID == stuck {
			select {
			case <-release:
			default:
				return &consumer.DelayError{After: 100 * time.Millisecond, Err: errPlanned}
			}
		}
		return nil
	})
	stuck = w.emit("stuck", 0)
	for i := 1; i < events; i++ {
		w.emit(fmt.Sprint(i), i)
	}
	let := w.letting(release)
	var lags []kafka.Lag
	observed := make(chan []kafka.Lag, 1000)
	began := time.Now()
	w.run(c, func(config *kafka.ConsumeConfig) {
		config.SessionTimeout, config.MaxAhead, config.Concurrency = shortSession, ahead, 1
		config.LagInterval = 100 * time.Millisecond
		config.ObserveLag = func(_ context.Context, lags []kafka.Lag) { observed <- lags }
	})
	eventually.True(t, "others go on", func() bool { return w.seen.count(anyEvent, consumer.Handled) >= ahead-1 })
	// The loop polls in pieces, so what came in one piece is handled, and then it is paused.
	eventually.True(t, "the event waits for longer than the session", func() bool {
		return time.Since(began) > shortSession*3/2 && w.seen.count(stuck, consumer.Delayed) > 1
	})
	if at, is := w.committed()[0]; is && at > 0 {
		t.Errorf("%d is committed, and the first message is not done", at)
	}
	for len(lags) == 0 || lags[0].Messages() < 0 { // none before the partition is assigned, and its first message is here
		lags = eventually.Receive(t, "the lag", observed)
	}
	if len(lags) != 1 || lags[0].Messages() != events {
		t.Errorf("the lag is %+v", lags)
	}
	let()
	w.done()
	if n := w.seen.count(anyEvent, consumer.Handled); n != events {
		t.Errorf("%d of %d were handled: some came again", n, events)
	}
}

// TestPartitionsGrow: with more partitions a key can be in another one, and what is newer can be handled before
// what is older. inbox.Newer refuses to go backwards.
func TestPartitionsGrow(t *testing.T) {
	t.Parallel()
	const keys = 16
	w, db := newEnv(t, 1), effects(t)
	release := make(chan struct{})
	applied, stale := make(chan string, keys*2), make(chan string, keys*2)
	c := w.consumer(consumer.Config{}, func(ctx context.Context, event *consumer.Event, payload license) error {
		if payload.N == 1 {
			<-release // a backlog
		}
		return outbox.InTx(ctx, db.Pool, func(ctx context.Context, tx pgx.Tx) error {
			newer, err := inbox.Newer(ctx, outbox.InSchema(tx, db.Schema), w.name, event.Aggregate, event.Seq)
			if err != nil {
				return err
			}
			if !newer {
				stale <- event.Aggregate.ID
				return nil
			}
			applied <- fmt.Sprintf("%s/%d", event.Aggregate.ID, payload.N)
			return nil
		})
	})
	for key := range keys {
		w.emit(fmt.Sprint(key), 1)
	}
	if _, err := w.admin.UpdatePartitions(w.patient(), 7, w.topic); err != nil {
		t.Fatal(err)
	}
	// Another publisher, which knows of them from the start.
	fresh, err := kafka.NewPublisher(cluster(), kafka.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fresh.Close() }()
	eventually.True(t, "the partitions are there", func() bool {
		about, err := w.admin.ListTopics(w.patient(), w.topic)
		return err == nil && len(about[w.topic].Partitions) == 7
	})
	moved := 0
	for key := range keys {
		if err := fresh.Publish(w.patient(), w.message(fmt.Sprint(key), 2)); err != nil {
			t.Fatal(err)
		}
	}
	ends, err := w.admin.ListEndOffsets(w.patient(), w.topic)
	if err != nil {
		t.Fatal(err)
	}
	for number := int32(1); number < 7; number++ {
		end, _ := ends.Lookup(w.topic, number)
		moved += int(end.Offset)
	}
	if moved == 0 || moved == keys {
		t.Fatalf("%d of %d keys moved to new partitions: nothing is shown", moved, keys)
	}
	let := w.letting(release)
	w.run(c, func(config *kafka.ConsumeConfig) { config.Concurrency = 2 * keys })
	for range moved {
		if first := eventually.Receive(t, "a newer event is handled first", applied); first[len(first)-2:] != "/2" {
			t.Errorf("%s was handled first", first)
		}
	}
	let()
	for range moved {
		eventually.Receive(t, "the older one is refused", stale)
	}
	w.done()
}
