package crash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/torture"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/relay/operator"
	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/kit/process"
)

// role is what a process does.
type role string

const (
	nobody   role = ""
	relays   role = "relay"
	produces role = "producer"
	operates role = "operator"
	migrates role = "migrator"
)

// task is what one process is told, as a file of JSON.
type task struct {
	torture.RelayProcess
	Role role `json:"role"`
	// Old tells that the relay does not know all types.
	Old bool `json:"old,omitempty"`
	// Events is how many a producer writes.
	Events int `json:"events,omitempty"`
	// Action and Dead are what an operator redrives.
	Action outbox.ID   `json:"action,omitzero"`
	Dead   []outbox.ID `json:"dead,omitempty"`
	// Expect is what it must be answered.
	Expect operator.Outcome `json:"expect,omitempty"`
}

// Live is what the processes of a trial run: the file says what it is.
func Live(ctx context.Context, file string) error {
	var l task
	if err := process.Told(file, &l); err != nil {
		return err
	}
	switch l.Role {
	case relays:
		return l.relay(ctx, file)
	case produces:
		return l.produce(ctx)
	case operates:
		return l.operate(ctx)
	case migrates:
		return l.migrate(ctx)
	case nobody:
	}
	return fmt.Errorf("crash: no role is called %q", l.Role)
}

// relay is torture's relay, with this proof's events and publisher.
func (l task) relay(ctx context.Context, file string) error {
	registry, err := newContracts(l.Run).registry(l.Old)
	if err != nil {
		return err
	}
	return torture.RunRelay(ctx, file, func(config relay.Config) (torture.Runner, error) {
		publisher, closePublisher, err := publisherAt(l.Broker, l.Run)
		if err != nil {
			return nil, err
		}
		config.Registry = registry
		config.Publisher = &fateful{inner: publisher, folder: l.Folder, tries: map[outbox.ID]int{}}
		// Little at a time, so that there is much still to do when the process dies.
		config.Batch, config.MaxInFlight, config.Concurrency = 40, 80, 8
		inner, err := relay.New(config)
		return closing{inner, closePublisher}, err
	})
}

// closing closes the publisher when the relay has ended.
type closing struct {
	torture.Runner
	close func() error
}

// Run runs the relay.
func (c closing) Run(ctx context.Context) error { return errors.Join(c.Runner.Run(ctx), c.close()) }

func (l task) produce(ctx context.Context) error {
	pool, err := pgxpool.New(ctx, l.Database)
	if err != nil {
		return fmt.Errorf("crash: %w", err)
	}
	defer pool.Close()
	history, err := appendTo(l.Folder, torture.ProducersFile)
	if err != nil {
		return err
	}
	defer history.Close()
	p := &producer{run: l.Run, name: l.Name, pool: pool, contracts: newContracts(l.Run), history: check.NewWriter(history)}
	return p.produce(ctx, l.Events)
}

func (l task) operate(ctx context.Context) error {
	pool, err := pgxpool.New(ctx, l.Database)
	if err != nil {
		return fmt.Errorf("crash: %w", err)
	}
	defer pool.Close()
	results, err := operator.New(pool, l.Run).Redrive(ctx, operator.Action{ID: l.Action, Actor: actor, Reason: "a proof"},
		l.Dead...)
	if err != nil {
		return err
	}
	for _, result := range results {
		if result.Outcome != l.Expect {
			return fmt.Errorf("crash: redrive of event %s: %s, it was %s", result.Event, result.Outcome, result.Was)
		}
	}
	return nil
}

func (l task) migrate(ctx context.Context) error {
	pool, err := pgxpool.New(ctx, l.Database)
	if err != nil {
		return fmt.Errorf("crash: %w", err)
	}
	defer pool.Close()
	std := stdlib.OpenDBFromPool(pool)
	defer std.Close()
	return schema.Outbox.Up(ctx, std, schema.Options{Schema: l.Run})
}

// appendTo opens a file of a history to which several processes write, one after the other.
func appendTo(folder, name string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(folder, name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("crash: %w", err)
	}
	return file, nil
}
