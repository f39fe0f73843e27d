// Command write-registry makes examples/registry.yaml of the marketplace's contracts, so that the names of types,
// aggregates and topics are written once, in Go. `go generate ./examples/marketplace/events` runs it; a test fails when
// the file in the tree is not what it writes.
package main

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"

	"github.com/posthaste-dev/posthaste/examples/marketplace/events"
	"github.com/posthaste-dev/posthaste/outbox"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: write-registry FILE")
		os.Exit(2)
	}
	registry, err := events.Registry(events.Topics{})
	var text []byte
	if err == nil {
		text, err = write(registry, events.Contracts)
	}
	if err == nil {
		err = os.WriteFile(os.Args[1], text, 0o644) //nolint:gosec // a file of the tree, which anybody may read
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "write-registry:", err)
		os.Exit(1)
	}
}

const header = `# The marketplace's contracts as a file, for the stock outbox-publisher: registry.file: ` +
	`examples/registry.yaml.
#
# Made of examples/marketplace/events by go generate; do not edit. Schemas are written by hand: the payload OrderEndedV1
# has schemas/order_ended.json. A test holds file and code to the same topics and the same verdicts.
#
# A schema says what a consumer cannot do without, and no more: a field that it does not name is let through, so that an
# older registry relays what a newer producer wrote. It may also stand here in place of the file's name.
contracts:
`

// write makes the file of these contracts, with the topics as the registry names them.
func write(registry *outbox.Registry, contracts []outbox.AnyContract) ([]byte, error) {
	text := bytes.NewBufferString(header)
	aggregate := ""
	for _, defined := range contracts {
		contract, known := registry.Contract(defined.Contract().Type)
		if !known {
			return nil, fmt.Errorf("the registry has no %s", defined.Contract().Type)
		}
		schema, err := schemaOf(defined)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", contract.Type, err)
		}
		if contract.Aggregate != aggregate {
			aggregate = contract.Aggregate
			fmt.Fprintf(text, "  # About %s.\n", aggregate)
		}
		fmt.Fprintf(text, "  - %s\n", strings.Join(append(fieldsOf(contract), "schema: "+schema), "\n    "))
	}
	return text.Bytes(), nil
}

var onDead = map[outbox.OnDead]string{outbox.OnDeadBlock: "block", outbox.OnDeadSkip: "skip"}

// fieldsOf are the keys of a contract. What is the default is left out, but for the version.
func fieldsOf(contract outbox.Contract) []string {
	fields := []string{
		"type: " + contract.Type, fmt.Sprint("version: ", contract.Version),
		"aggregate: " + contract.Aggregate, "topic: " + contract.Topic,
	}
	if contract.OnDead != (outbox.Contract{}).OnDead {
		fields = append(fields, "on_dead: "+onDead[contract.OnDead])
	}
	if contract.MaxAttempts > 0 {
		fields = append(fields, fmt.Sprint("max_attempts: ", contract.MaxAttempts))
	}
	return fields
}

var (
	versionPattern = regexp.MustCompile(`V[0-9]+$`)
	wordPattern    = regexp.MustCompile(`[A-Z][a-z0-9]*`)
)

// schemaOf is the file with the schema of a contract's payload, which is named as its Go type is.
func schemaOf(contract outbox.AnyContract) (string, error) {
	decode, found := reflect.TypeOf(contract).MethodByName("Decode")
	if !found {
		return "", fmt.Errorf("a %T cannot say what its payload is", contract)
	}
	payload := versionPattern.ReplaceAllString(decode.Type.Out(0).Name(), "")
	words := wordPattern.FindAllString(payload, -1)
	if payload == "" || strings.Join(words, "") != payload {
		return "", fmt.Errorf("no schema can be named after a payload of the type %s", decode.Type.Out(0))
	}
	return "schemas/" + strings.ToLower(strings.Join(words, "_")) + ".json", nil
}
