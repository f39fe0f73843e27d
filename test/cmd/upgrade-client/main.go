// Command upgrade-client is an application for proof-upgrade: a producer that emits in every way that there is, or
// a consumer with an inbox. The proof builds it twice: against the packages of the working tree, and in the tree of
// an old commit, against those of that commit. So it uses nothing but what users can import, and nothing that is newer
// than the last release: one that cannot be built there has found a change that breaks users.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/posthaste-dev/posthaste/outbox"
)

// task is what the program is told, as a file of JSON.
type task struct {
	// Name tells the applications apart; it begins with the side, old or new.
	Name string `json:"name"`
	// Database is the outbox's, in this Schema; the tables of the inbox are there as well.
	Database string `json:"database"`
	Schema   string `json:"schema"`
	// History is where a producer writes down its transactions, Rate how many there are in a second, and Things how many
	// aggregates they are about.
	History string `json:"history,omitempty"`
	Rate    int    `json:"rate,omitempty"`
	Things  int    `json:"things,omitempty"`
	// NATS is where a consumer finds the Stream, and DeadLetters the subject for what it gives up.
	NATS        string `json:"nats,omitempty"`
	Stream      string `json:"stream,omitempty"`
	DeadLetters string `json:"deadLetters,omitempty"`
}

// body is the data of every event.
type body struct {
	Version uint64 `json:"version"`
	By      string `json:"by"`
}

const aggregateType = "thing"

// contracts are those of package torture, whose run this is part of.
func contracts(run string) (changed, remarked *outbox.ContractFor[body]) {
	return outbox.Define[body](outbox.Contract{Type: "thing_changed", Aggregate: aggregateType, Topic: run + ".changed"}),
		outbox.Define[body](outbox.Contract{Type: "thing_noted", Aggregate: aggregateType, Topic: run + ".noted"})
}

func main() {
	// A stop is what the proof asks for, and no failure.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "upgrade-client:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return errors.New("it takes produce or consume, and a file")
	}
	text, err := os.ReadFile(args[1])
	if err != nil {
		return fmt.Errorf("what it is told: %w", err)
	}
	var t task
	if err := json.Unmarshal(text, &t); err != nil {
		return fmt.Errorf("what it is told: %w", err)
	}
	switch args[0] {
	case "produce":
		return produce(ctx, t)
	case "consume":
		return consume(ctx, t)
	default:
		return fmt.Errorf("it can produce and consume, and not %q", args[0])
	}
}
