package contracts

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/posthaste-dev/posthaste/outbox"
)

// A Document is the contracts of a registry, sorted by type.
type Document struct {
	Contracts []Contract `json:"contracts"`
}

// A Contract is what an event type is. The names in JSON are those of the registry's file.
type Contract struct {
	Type      string `json:"type"`
	Version   int    `json:"version"`
	Aggregate string `json:"aggregate"`
	// Topic is where its events go, as the deployment calls it.
	Topic string `json:"topic"`
	// OnDead is skip or block.
	OnDead string `json:"on_dead"`
	// MaxAttempts is how often an event may fail by its own fault; 0: as the relay says.
	MaxAttempts int `json:"max_attempts,omitempty"`
	// Schema is the JSON Schema of the payload's data, whole in itself; empty: any object will do.
	Schema json.RawMessage `json:"schema,omitempty"`
}

// The words for what a dead event means for later ones.
const (
	onDeadSkip  = "skip"
	onDeadBlock = "block"
)

// Of is the document of a registry. schemas are those of its types, as far as there are any. Each is to be whole in
// itself: it refers to nothing but its own parts.
func Of(registry *outbox.Registry, schemas map[string]json.RawMessage) (Document, error) {
	document := Document{Contracts: []Contract{}}
	for _, eventType := range registry.Types() {
		from, _ := registry.Contract(eventType)
		to := Contract{
			Type: from.Type, Version: from.Version, Aggregate: from.Aggregate, Topic: from.Topic, OnDead: onDeadSkip,
			MaxAttempts: from.MaxAttempts,
		}
		if from.OnDead == outbox.OnDeadBlock {
			to.OnDead = onDeadBlock
		}
		if text := schemas[eventType]; len(text) > 0 {
			schema, err := decode(text)
			if err == nil {
				to.Schema, err = encode(schema)
			}
			if err != nil {
				return Document{}, fmt.Errorf("contracts: the schema of %.80q: %w", eventType, err)
			}
		}
		document.Contracts = append(document.Contracts, to)
	}
	return document, nil
}

// Find is the contract of a type.
func (d Document) Find(eventType string) (Contract, bool) {
	at, found := slices.BinarySearchFunc(d.Contracts, eventType, func(c Contract, name string) int {
		return cmp.Compare(c.Type, name)
	})
	if !found {
		return Contract{}, false
	}
	return d.Contracts[at], true
}

// JSON is the document as text: the same for equal registries, and a file that a publisher reads.
func (d Document) JSON() ([]byte, error) { return indented(d) }

// decode reads JSON without changing its numbers.
func decode(text []byte) (document any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&document); err != nil {
		return nil, errors.New("not JSON")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one document")
	}
	return document, nil
}

// encode writes JSON with sorted names.
func encode(document any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return bytes.TrimSpace(text.Bytes()), nil
}

// indented is for people as well.
func indented(document any) ([]byte, error) {
	compact, err := encode(document)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := json.Indent(&text, compact, "", "  "); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	text.WriteByte('\n')
	return text.Bytes(), nil
}
