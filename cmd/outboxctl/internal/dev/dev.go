package dev

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// Name is what a developer's relay is called in outbox_relays. It learns every type.
const Name = "outboxctl dev"

// fixedName is that of one with a registry, which learns none.
const fixedName = Name + ", registry from a file"

//go:embed sql/parked.sql
var parkedQuery string

// Whose outbox it is.
var (
	//go:embed sql/tables.sql
	tablesQuery string
	//go:embed sql/others.sql
	othersQuery string
	//go:embed sql/developer.sql
	developerQuery string
	//go:embed sql/events.sql
	eventsQuery string
)

// Config says where the outbox is, and who is told what happens.
type Config struct {
	// Database is the URL of the outbox's database, whose tables are there.
	Database string
	// BeforeConnect is that of relay.Config. Defaults to nothing.
	BeforeConnect func(ctx context.Context, config *pgx.ConnConfig) error
	Schema        string
	// Registry has the contracts. Defaults to a contract for every type that is met.
	Registry *outbox.Registry
	// Demo has a small shop emit events, one type of which fails, to topics of which one goes down and comes back.
	Demo bool
	// Ready is called once, when events are delivered.
	Ready func()
	// Delivered is called for each event, one at a time. Its error ends the run, and the event waits for the next one.
	Delivered func(Delivered) error
	// Notice is told what else people should see: failures, dead letters, topics that pause and go on. It is called by
	// several goroutines.
	Notice func(Notice)

	pace pace // of the demo
}

// A Notice is something that happened besides deliveries.
type Notice struct {
	Bad  bool
	Text string
}

// Whose is what tells whether an outbox is a developer's.
type Whose struct {
	// Others are the names of some relays that publish, or have published, from this outbox to something else. What a
	// developer's relay takes never reaches that.
	Others []string
	// Strange: there are events, and no relay of a developer was here. Relays that ended more than a day ago are
	// forgotten, so somebody else's may have been.
	Strange bool
}

// Look tells whose outbox it is. It changes nothing, and where there are no tables they are nobody's.
func Look(ctx context.Context, pool *pgxpool.Pool, schema string) (found Whose, err error) {
	var relays, events, developer bool
	if err := pool.QueryRow(ctx, tablesQuery, schema).Scan(&relays, &events); err != nil {
		return found, fmt.Errorf("whose outbox is it: %w", err)
	}
	if relays {
		rows, err := pool.Query(ctx, named(othersQuery, schema), Name)
		if err != nil {
			return found, fmt.Errorf("who else is here: %w", err)
		}
		if found.Others, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			return found, fmt.Errorf("who else is here: %w", err)
		}
		if err := pool.QueryRow(ctx, named(developerQuery, schema), Name).Scan(&developer); err != nil {
			return found, fmt.Errorf("was a developer here: %w", err)
		}
	}
	if events && !developer {
		if err := pool.QueryRow(ctx, named(eventsQuery, schema)).Scan(&found.Strange); err != nil {
			return found, fmt.Errorf("are there events: %w", err)
		}
	}
	return found, nil
}

// Run delivers events until the context ends, and returns how many there were.
func Run(ctx context.Context, pool *pgxpool.Pool, config Config) (delivered int, err error) {
	var failure error
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	d := &developer{
		Config: config, types: contracts{"order_created": "order"}, unusable: map[string]bool{}, met: make(chan struct{}, 1),
		broker: &broker{report: config.Delivered, fail: func(err error) { failure = err; end(err) }},
	}
	d.Ready = sync.OnceFunc(config.Ready)
	var running sync.WaitGroup
	defer running.Wait()
	working, stop := context.WithCancel(ctx)
	defer stop()
	running.Go(func() { operator.New(pool, config.Schema).NewWorker(Name, nil).Run(working) })
	if config.Demo {
		maps.Copy(d.types, demoTypes)
		pace := config.pace.withDefaults()
		d.broker.faults = &faults{began: time.Now(), pace: pace}
		bell := outbox.NewDoorbell(outbox.RingPgx(pool, config.Schema)) //nolint:contextcheck // it is closed below
		defer bell.Close()
		running.Go(func() { shop(working, pool, config.Schema, pace.gap, bell) })
	}
	for ctx.Err() == nil {
		if err := d.learnParked(ctx, pool); err != nil {
			if ctx.Err() == nil {
				d.Notice(Notice{Bad: true, Text: clean.Error(err)})
			}
			_ = wait.For(ctx, time.Second) // it may be an outage
			continue
		}
		if err := d.runRelay(ctx); err != nil {
			return d.broker.delivered(), err
		}
	}
	return d.broker.delivered(), failure // of a publish, which has ended with its relay
}

// developer is one run.
type developer struct {
	Config
	broker *broker
	types  contracts // changes only while no relay runs, as does unusable
	// unusable are types that no contract can have: somebody has written rows past the checks.
	unusable map[string]bool
	met      chan struct{} // rung when an event of another type was parked
}

// learnParked learns the types that wait for a relay that knows them.
func (d *developer) learnParked(ctx context.Context, pool *pgxpool.Pool) error {
	if d.Registry != nil {
		return nil
	}
	rows, err := pool.Query(ctx, named(parkedQuery, d.Schema))
	if err != nil {
		return fmt.Errorf("look at what is parked: %w", err)
	}
	var eventType, aggregateType string
	if _, err = pgx.ForEachRow(rows, []any{&eventType, &aggregateType}, func() error {
		if _, err := (contracts{eventType: aggregateType}).registry(); err != nil {
			d.unusable[eventType] = true
		} else {
			d.types.learn(eventType, aggregateType)
		}
		return nil
	}); err != nil {
		return fmt.Errorf("look at what is parked: %w", err)
	}
	return nil
}

// runRelay runs a relay until the context ends, or until it has met a type that the next one shall know.
func (d *developer) runRelay(ctx context.Context) (err error) {
	registry, name := d.Registry, fixedName
	if registry == nil {
		name = Name
		if registry, err = d.types.registry(); err != nil {
			return err
		}
	}
	r, err := relay.New(relay.Config{
		// A developer looks at the terminal, and kills what does not stop.
		Settings: relay.Settings{
			Poll: 100 * time.Millisecond, Lease: 10 * time.Second, Drain: 3 * time.Second, MaxDelay: 30 * time.Second,
		},
		Database: d.Database, BeforeConnect: d.BeforeConnect, Schema: d.Schema, Registry: registry, Publisher: d.broker,
		Name: name, Logger: slog.New(quiet{d.Notice}), Observe: d.observe, SurveyEvery: 2 * time.Second,
	})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- r.Run(running) }()
	select {
	case err := <-ended:
		return err
	case <-d.met:
		stop()
		return <-ended
	}
}

// observe is called from the relay's loop.
func (d *developer) observe(step relay.Step) {
	event := step.Type + " of " + step.Aggregate.Type + "/" + step.Aggregate.ID
	switch step.Kind {
	case relay.StepAcquire:
		d.Ready()
	case relay.StepPublishFailed:
		if step.Class != publish.TopicFault && step.Class != publish.NotSent { // the pause tells of those
			d.Notice(Notice{Bad: true, Text: fmt.Sprintf("%s failed, attempt %d: %s", event, step.Attempt, step.Detail)})
		}
	case relay.StepPause:
		d.Notice(Notice{Bad: true, Text: "topic " + step.Topic + " is paused: " + step.Detail})
	case relay.StepResume:
		d.Notice(Notice{Text: "topic " + step.Topic + " goes on"})
	case relay.StepAlarm:
		if d.Registry != nil || !strings.Contains(step.Detail, "not known here") { // such types are learned
			d.Notice(Notice{Bad: true, Text: step.Detail})
		}
	case relay.StepSettle:
		d.settled(step, event)
	case relay.StepRenew, relay.StepRelease, relay.StepLose, relay.StepPublish, relay.StepAck, relay.StepCharge,
		relay.StepSettleRequest, relay.StepForget, relay.StepFail: // the log has what is wrong among these
	}
}

func (d *developer) settled(step relay.Step, event string) {
	if step.Result != relay.SettleApplied {
		return
	}
	switch step.State {
	case relay.StateParked:
		if d.Registry != nil {
			d.Notice(Notice{Bad: true, Text: event + " is parked: the registry has no contract for its type"})
			return
		}
		if _, known := d.types[step.Type]; known || d.unusable[step.Type] { // most events of it break the contract
			d.Notice(Notice{Bad: true, Text: event + " is parked: " + step.Detail})
			return
		}
		select {
		case d.met <- struct{}{}:
			d.Notice(Notice{Text: step.Type + " is a new type: the relay starts again with a contract for it"})
		default:
		}
	case relay.StateDead, relay.StateDeadBlocking:
		d.Notice(Notice{Bad: true, Text: event + " is dead: " + step.Detail + " (id " + step.Event.String() + ")"})
	case relay.StateReady, relay.StateRetrying, relay.StateWaiting, relay.StatePublished, relay.StateDiscarded:
	}
}

// named puts the schema's name into a statement.
func named(statement, schema string) string {
	return strings.ReplaceAll(statement, "{schema}", pgx.Identifier{schema}.Sanitize())
}
