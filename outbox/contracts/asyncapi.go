package contracts

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"github.com/posthaste-dev/posthaste/publish"
)

// AsyncAPI is what an AsyncAPI document says besides the contracts.
type AsyncAPI struct {
	// Title names the application that publishes. Defaults to "Events".
	Title string
	// Version is of the document. Defaults to the beginning of a hash of the contracts: it changes when they do.
	Version string
	// Format is how messages look, Formats the same for single topics. Defaults to publish.Envelope.
	Format  publish.Format
	Formats map[string]publish.Format
	// Source is the ce-source of CloudEvents. Defaults to the event's namespace.
	Source string
}

// AsyncAPI is the document in AsyncAPI 3.0: a channel per topic, a message per event type with its headers (as
// docs/reference/formats.md describes them) and its envelope, and the operations by which they are sent. The same
// contracts make the same text. A schema is told as AsyncAPI's own kind, which is JSON Schema's draft 7 and more:
// keywords that are newer are there, and tools that do not know them pass them over.
func (d Document) AsyncAPI(about AsyncAPI) ([]byte, error) {
	if about.Title == "" {
		about.Title = "Events"
	}
	if about.Version == "" {
		text, err := d.JSON()
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(text)
		about.Version = hex.EncodeToString(sum[:6])
	}
	messages, schemas := object{}, object{}
	topics := map[string][]string{}
	for _, contract := range d.Contracts {
		schema, err := componentOf(contract)
		if err != nil {
			return nil, err
		}
		schemas[contract.Type], messages[contract.Type] = schema, about.message(contract)
		topics[contract.Topic] = append(topics[contract.Topic], contract.Type)
	}
	channels, operations := object{}, object{}
	for topic, types := range topics {
		id := channelOf(topic)
		channels[id], operations["send_"+id] = newChannel(id, topic, types)
	}
	return indented(object{
		"asyncapi":           "3.0.0",
		"info":               object{"title": about.Title, "version": about.Version},
		"defaultContentType": "application/json",
		"channels":           channels,
		"operations":         operations,
		"components":         object{"messages": messages, "schemas": schemas},
	})
}

// object is one of JSON. It is written with sorted names.
type object = map[string]any

var plainName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// channelOf is the name of a topic's channel. It stands in references, so that it has no characters of other meanings;
// the address has the topic as it is.
func channelOf(topic string) string {
	if plainName.MatchString(topic) {
		return topic
	}
	plain := regexp.MustCompile(`[^A-Za-z0-9._-]+`).ReplaceAllString(topic, "_")
	sum := sha256.Sum256([]byte(topic)) // topics that look alike are two channels
	return plain + "-" + hex.EncodeToString(sum[:4])
}

// newChannel is a topic's channel with its types, and the operation by which they are sent there.
func newChannel(id, topic string, types []string) (channel, operation object) {
	messages, sent := object{}, []any{}
	for _, name := range types {
		messages[name] = object{"$ref": "#/components/messages/" + name}
		sent = append(sent, object{"$ref": "#/channels/" + id + "/messages/" + name})
	}
	channel = object{"address": topic, "title": topic, "messages": messages}
	if strings.ContainsAny(topic, "{}") { // those would be parameters
		channel["address"] = nil
	}
	return channel, object{"action": "send", "channel": object{"$ref": "#/channels/" + id}, "messages": sent}
}

// componentOf is the schema of a payload's data, with its references as they lead from the whole document. There it has
// no address of its own, and nor have its parts: what leads to them by address or anchor does so by a pointer.
func componentOf(contract Contract) (any, error) {
	if len(contract.Schema) == 0 {
		return object{"type": "object"}, nil
	}
	schema, err := decode(contract.Schema)
	if err != nil {
		return nil, fmt.Errorf("contracts: the schema of %.80q: %w", contract.Type, err)
	}
	if !rootRefs(schema) {
		return nil, fmt.Errorf("contracts: the schema of %.80q: parts of it have the same $id or $anchor, or a $schema of "+
			"their own: give them names of their own, and no $schema", contract.Type)
	}
	own := []string{"$schema", "$id", "$anchor"}
	if yearOf(schema) == 4 {
		own = append(own, "id")
	}
	document, nowhere := clone(schema), ""
	walk(schema, "", func(part map[string]any, _ string) {
		for _, keyword := range own {
			delete(part, keyword)
		}
		ref, is := part["$ref"].(string)
		if !is || ofDraft(ref) {
			return
		}
		if _, found := pointed(document, ref); !found {
			nowhere = ref
			return
		}
		part["$ref"] = "#/components/schemas/" + contract.Type + strings.TrimPrefix(ref, "#")
	})
	if nowhere != "" {
		return nil, fmt.Errorf("contracts: the schema of %.80q: the reference %.200q leads to nothing in it: put into it "+
			"what it refers to", contract.Type, nowhere)
	}
	return schema, nil
}

func (a AsyncAPI) message(contract Contract) object {
	return object{
		"name": contract.Type, "title": contract.Type, "contentType": "application/json",
		"headers": a.headers(contract), "payload": envelopeOf(contract),
		"x-posthaste": object{
			"aggregate": contract.Aggregate, "version": contract.Version, "onDead": contract.OnDead,
		},
	}
}

func text(description string) object { return object{"type": "string", "description": description} }

// headers are the attributes of a message.
func (a AsyncAPI) headers(contract Contract) object {
	id := text("The event's id, a UUIDv7: the same on every copy.")
	id["format"] = "uuid"
	created := text("When the event was written.")
	created["format"] = "date-time"
	seq := text("The event's number, by which events of an aggregate are ordered.")
	seq["pattern"] = "^[0-9]+$"
	properties := object{
		"event_id":       id,
		"event_type":     object{"type": "string", "const": contract.Type},
		"aggregate_type": object{"type": "string", "const": contract.Aggregate},
		"aggregate_id":   text("What the event is about."),
		"created_at":     created,
		"outbox_seq":     seq,
		"namespace":      text("The module of the event, where it is not default."),
		"tenant_id":      text("The customer, where the event has one."),
		"dedupe_key":     text("The producer's own name for the event, where it has one."),
		"redelivered":    text("On a copy that somebody asked for: the number of the request."),
	}
	required := []any{"event_id", "event_type", "aggregate_type", "aggregate_id", "created_at", "outbox_seq"}
	format, own := a.Formats[contract.Topic]
	if !own {
		format = a.Format
	}
	if format == publish.CloudEvents {
		required = append(required, a.addCloudEvent(contract, properties)...)
	}
	return object{
		"type": "object", "properties": properties, "required": required,
		"additionalProperties": text("A header of the producer's own."),
	}
}

// addCloudEvent adds the attributes of CloudEvents, and tells which are always there.
func (a AsyncAPI) addCloudEvent(contract Contract, properties object) (required []any) {
	source := text("/ and the event's namespace.")
	if a.Source != "" {
		source = object{"type": "string", "const": a.Source}
	}
	at := text("When the event occurred, as the envelope has it.")
	at["format"] = "date-time"
	properties["ce-specversion"] = object{"type": "string", "const": "1.0"}
	properties["ce-id"] = text("As event_id.")
	properties["ce-source"] = source
	properties["ce-type"] = object{"type": "string", "const": contract.Type}
	properties["ce-subject"] = text("The aggregate's type, / and its id.")
	properties["ce-datacontenttype"] = object{"type": "string", "const": "application/json"}
	properties["ce-time"] = at
	properties["ce-traceparent"] = text("The trace in which the event was emitted, where it has one.")
	properties["ce-tracestate"] = text("As ce-traceparent.")
	return []any{"ce-specversion", "ce-id", "ce-source", "ce-type", "ce-subject", "ce-datacontenttype"}
}

// envelopeOf is the body of a message.
func envelopeOf(contract Contract) object {
	id := text("The event's id.")
	id["format"] = "uuid"
	at := text("When it occurred, as the producer says.")
	at["format"] = "date-time"
	return object{
		"type": "object", "required": []any{"version", "eventId", "occurredAt", "data"}, "additionalProperties": false,
		"properties": object{
			"version": object{
				"type": "integer", "minimum": 1, "description": "The version of the payload.",
				"examples": []any{contract.Version},
			},
			"eventId":    id,
			"occurredAt": at,
			"actor": object{
				"type": "object", "description": "Who caused it.", "required": []any{"type", "id"},
				"properties": object{
					"type": object{"type": "string"}, "id": object{"type": "string"}, "name": object{"type": "string"},
				},
			},
			"data": object{"$ref": "#/components/schemas/" + contract.Type},
		},
	}
}
