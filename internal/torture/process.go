package torture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
)

// RelayProcess is what one process of a relay is given, as a file of JSON.
type RelayProcess struct {
	Name     string        `json:"name"`
	Database string        `json:"database"`
	Listen   string        `json:"listen,omitempty"` // where the doorbell is heard, if not there
	Broker   string        `json:"broker"`
	Run      string        `json:"run"`
	Folder   string        `json:"folder"`
	Lease    time.Duration `json:"lease"`
	Mutant   string        `json:"mutant,omitempty"`
	LostAcks int           `json:"lost_acks"`
}

// Runner is a relay, ours or a mutant.
type Runner interface {
	Run(ctx context.Context) error
}

// Relay makes the relay that is to be proven.
func Relay(config relay.Config) (Runner, error) { return relay.New(config) }

// stepsFile is where a process writes its steps.
func stepsFile(folder, name string) string { return filepath.Join(folder, "relay-"+name+".jsonl") }

// RunRelay runs one relay until the context ends, or until whoever started the process is gone.
func RunRelay(ctx context.Context, file string, newRelay func(relay.Config) (Runner, error)) (err error) {
	var process RelayProcess
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &process)
	}
	if err != nil {
		return fmt.Errorf("torture: what the relay is given: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends when the parent does
		cancel(errors.New("the parent is gone"))
	}()
	steps, err := os.Create(stepsFile(process.Folder, process.Name))
	if err != nil {
		return fmt.Errorf("torture: %w", err)
	}
	defer steps.Close()
	broker, at, err := brokerAt(process.Broker)
	if err != nil {
		return err
	}
	publisher, closePublisher, err := broker.publisher(ctx, at, process.Run, process.Lease/3)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, closePublisher())
		reportLeaks(os.Stderr)
	}()
	config, err := process.config(publisher, check.NewWriter(steps))
	if err != nil {
		return err
	}
	r, err := newRelay(config)
	if err != nil {
		return err
	}
	return r.Run(ctx)
}

func (p RelayProcess) config(publisher publish.Publisher, steps *check.Writer) (relay.Config, error) {
	registry, err := newContracts(p.Run).registry()
	if err != nil {
		return relay.Config{}, err
	}
	inner, err := withMutant(p.Mutant, publisher)
	if err != nil {
		return relay.Config{}, err
	}
	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	return relay.Config{
		Database: p.Database, ListenDatabase: p.Listen, Schema: p.Run, Registry: registry, Name: p.Name, Logger: logger,
		Publisher: newHostile(inner, p, steps),
		Observe: func(step relay.Step) {
			if step.Kind == relay.StepAlarm {
				logger.Warn("alarm", "lane", step.Lane, "event", step.Event.String(), "detail", step.Detail)
			}
			record, wanted := recorded(p.Name, step, time.Now())
			if !wanted {
				return
			}
			if err := steps.Add(record); err != nil {
				logger.Error("a step is not recorded", "error", err)
			}
		},
		Settings: relay.Settings{
			Lease: p.Lease, Poll: 100 * time.Millisecond, BaseDelay: 50 * time.Millisecond, MaxDelay: time.Second,
			Drain: max(10*time.Second, p.Lease/3), // what is in flight may take a third of the lease
		},
	}, nil
}
