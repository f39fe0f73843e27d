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
	"github.com/posthaste-dev/posthaste/relay"
)

// Life is what one process of a relay is told, as a file of JSON.
type Life struct {
	Name     string        `json:"name"`
	Database string        `json:"database"`
	Listen   string        `json:"listen,omitempty"` // where the doorbell is heard, if not there
	Broker   string        `json:"broker"`
	Run      string        `json:"run"`
	Folder   string        `json:"folder"`
	Lease    time.Duration `json:"lease"`
	Plant    string        `json:"plant,omitempty"`
	LostAcks int           `json:"lost_acks"`
}

// Runner is a relay, ours or one with a planted bug.
type Runner interface {
	Run(ctx context.Context) error
}

// Relay makes the relay that is to be proven.
func Relay(config relay.Config) (Runner, error) { return relay.New(config) }

// stepsFile is where a life writes its steps.
func stepsFile(folder, life string) string { return filepath.Join(folder, "relay-"+life+".jsonl") }

// Live runs one relay until the context ends, or until whoever started the process is gone.
func Live(ctx context.Context, file string, newRelay func(relay.Config) (Runner, error)) (err error) {
	var life Life
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &life)
	}
	if err != nil {
		return fmt.Errorf("torture: what the relay is told: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends when the parent does
		cancel(errors.New("the parent is gone"))
	}()
	steps, err := os.Create(stepsFile(life.Folder, life.Name))
	if err != nil {
		return fmt.Errorf("torture: %w", err)
	}
	defer steps.Close()
	broker, at, err := brokerAt(life.Broker)
	if err != nil {
		return err
	}
	publisher, closePublisher, err := broker.publisher(ctx, at, life.Run, life.Lease/3)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, closePublisher())
		reportLeaks(os.Stderr)
	}()
	config, err := life.config(publisher, check.NewWriter(steps))
	if err != nil {
		return err
	}
	r, err := newRelay(config)
	if err != nil {
		return err
	}
	return r.Run(ctx)
}

func (l Life) config(publisher relay.Publisher, steps *check.Writer) (relay.Config, error) {
	registry, err := newContracts(l.Run).registry()
	if err != nil {
		return relay.Config{}, err
	}
	inner, err := plant(l.Plant, publisher)
	if err != nil {
		return relay.Config{}, err
	}
	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	return relay.Config{
		Database: l.Database, ListenDatabase: l.Listen, Schema: l.Run, Registry: registry, Name: l.Name, Logger: logger,
		Publisher: newHostile(inner, l, steps),
		Observe: func(step relay.Step) {
			if step.Do == "alarm" {
				logger.Warn("alarm", "lane", step.Lane, "event", step.Event.String(), "detail", step.Detail)
			}
			record, wanted := recorded(l.Name, step, time.Now())
			if !wanted {
				return
			}
			if err := steps.Add(record); err != nil {
				logger.Error("a step is not recorded", "error", err)
			}
		},
		Settings: relay.Settings{
			Lease: l.Lease, Poll: 100 * time.Millisecond, BaseDelay: 50 * time.Millisecond, MaxDelay: time.Second,
			Drain: max(10*time.Second, l.Lease/3), // what is in flight may take a third of the lease
		},
	}, nil
}
