package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/examples/marketplace/events"
	"github.com/posthaste-dev/posthaste/outbox"
)

const examples = "../../.."

// The file in the tree is what the contracts say.
func TestTheRegistryFileIsMadeOfTheContracts(t *testing.T) {
	t.Parallel()
	registry, err := events.Registry(events.Topics{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := write(registry, events.Contracts)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(examples, "registry.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Error("examples/registry.yaml is not what the contracts say: run go generate ./examples/marketplace/events")
	}
}

// Every payload has a schema, and no schema is left over from one that is gone.
func TestEverySchemaIsThatOfAPayload(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, contract := range events.Contracts {
		name, err := schemaOf(contract)
		if err != nil {
			t.Fatal(err)
		}
		used[filepath.Base(name)] = true
		if _, err := os.Stat(filepath.Join(examples, name)); err != nil {
			t.Errorf("%s: %v", contract.Contract().Type, err)
		}
	}
	files, err := os.ReadDir(filepath.Join(examples, "schemas"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !used[file.Name()] {
			t.Errorf("no payload has the schema %s", file.Name())
		}
	}
}

type orderEndedV12 struct{}

// What is not the default is written, and what is stays out: the file then follows the default.
func TestWhatIsNotTheDefaultIsWritten(t *testing.T) {
	t.Parallel()
	contracts := []outbox.AnyContract{
		outbox.Define[events.OrderEndedV1](outbox.Contract{Type: "a", Aggregate: "order", Topic: "short"}),
		outbox.Define[events.AdV1](outbox.Contract{
			Type: "b", Version: 2, Aggregate: "order", Topic: "short", OnDead: another(), MaxAttempts: 3,
		}),
		outbox.Define[orderEndedV12](outbox.Contract{Type: "c", Aggregate: "ad", Topic: "other"}),
	}
	registry, err := outbox.NewRegistry(contracts...)
	if err == nil {
		registry, err = registry.WithTopics(map[string]string{"short": "long/name"})
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := write(registry, contracts[:2])
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(got), "contracts:\n")
	want := `  # About order.
  - type: a
    version: 1
    aggregate: order
    topic: long/name
    schema: schemas/order_ended.json
  - type: b
    version: 2
    aggregate: order
    topic: long/name
    on_dead: ` + onDead[another()] + `
    max_attempts: 3
    schema: schemas/ad.json
`
	if rows != want {
		t.Errorf("got\n%s\nwant\n%s", rows, want)
	}
	if _, err := write(registry, contracts); err == nil || !strings.HasPrefix(err.Error(), "c: ") {
		t.Errorf("a payload whose name cannot be a schema's was taken: %v", err)
	}
	strange := outbox.Define[events.AdV1](outbox.Contract{Type: "d", Aggregate: "ad", Topic: "other"})
	if _, err := write(registry, []outbox.AnyContract{strange}); err == nil {
		t.Error("a contract that the registry does not have was taken")
	}
}

// another is what OnDead is not by default.
func another() outbox.OnDead {
	if (outbox.Contract{}).OnDead == outbox.OnDeadSkip {
		return outbox.OnDeadBlock
	}
	return outbox.OnDeadSkip
}
