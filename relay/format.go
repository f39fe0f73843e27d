package relay

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
)

// maxSourceBytes is what Pub/Sub takes as the value of an attribute.
const maxSourceBytes = 1024

// formatProblems lists what is wrong with the formats. A topic that no contract has is a mistake in its name: its
// messages would look as nobody expects.
func (c *Config) formatProblems() []error {
	var problems []error
	invalid := func(bad bool, format string, args ...any) {
		if bad {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	invalid(!slices.Contains(publish.Formats(), c.Format), "Format: %.40q, must be one of %s", c.Format, formatNames())
	for _, topic := range slices.Sorted(maps.Keys(c.Formats)) {
		invalid(!slices.Contains(publish.Formats(), c.Formats[topic]), "Formats: topic %.40q: %.40q, must be one of %s",
			topic, c.Formats[topic], formatNames())
	}
	problems = append(problems, c.unknownTopics("Formats", maps.Keys(c.Formats))...)
	err := checkSource(c.Source)
	invalid(c.Source != "" && err != nil, "Source: %w", err)
	return problems
}

func formatNames() string {
	names := make([]string, 0, len(publish.Formats()))
	for _, format := range publish.Formats() {
		names = append(names, string(format))
	}
	return strings.Join(names, ", ")
}

// checkSource holds the source to what CloudEvents calls a URI-reference.
func checkSource(source string) error {
	if len(source) > maxSourceBytes {
		return fmt.Errorf("%d bytes, the limit is %d", len(source), maxSourceBytes)
	}
	if _, err := url.Parse(source); err != nil || strings.ContainsFunc(source, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"<>\\^`{|}", r)
	}) {
		return errors.New("must be a URI or the path of one, such as https://shop.example.com/orders or /shop")
	}
	return nil
}

// formatOf is the format of a topic.
func (c *Config) formatOf(topic string) publish.Format {
	if format, own := c.Formats[topic]; own {
		return format
	}
	return c.Format
}

// cloudEventName is how names of attributes begin that belong to CloudEvents.
const cloudEventName = "ce-"

// addCloudEvent makes a message a CloudEvent in binary mode.
func (c *Config) addCloudEvent(message *publish.Message) error {
	occurredAt, err := outbox.OccurredAt(message.Body)
	if err != nil {
		return err
	}
	attributes := message.Attributes
	for name := range attributes {
		if confusesCloudEvents(name) {
			delete(attributes, name)
		}
	}
	attributes["ce-specversion"] = "1.0"
	attributes["ce-id"] = attributes["event_id"]
	attributes["ce-source"] = c.Source
	if c.Source == "" {
		attributes["ce-source"] = "/" + message.Namespace
	}
	attributes["ce-type"] = message.EventType
	attributes["ce-subject"] = message.AggregateType + "/" + message.AggregateID
	attributes["ce-datacontenttype"] = "application/json"
	// it is optional; an offset can lead out of what it may be
	if at := occurredAt.UTC(); at.Year() >= 1 && at.Year() <= 9999 {
		attributes["ce-time"] = at.Format(time.RFC3339Nano)
	}
	// The extension for distributed tracing: the trace in which the event was created, as the headers have it.
	for _, name := range []string{"traceparent", "tracestate"} {
		if value := attributes[name]; value != "" {
			attributes[cloudEventName+name] = value
		}
	}
	return nil
}

// confusesCloudEvents tells the headers that would speak for the event: attributes that the relay sets itself, names
// that no attribute can have, and content-type, with which an event's header could claim another mode. Extensions of
// the producer's own, such as ce-partitionkey, go along.
func confusesCloudEvents(header string) bool {
	if strings.EqualFold(header, "content-type") {
		return true
	}
	if len(header) < len(cloudEventName) || !strings.EqualFold(header[:len(cloudEventName)], cloudEventName) {
		return false
	}
	extension, lower := strings.CutPrefix(header, cloudEventName)
	if !lower || extension == "" || strings.Trim(extension, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return true
	}
	switch extension {
	case "specversion", "id", "source", "type", "subject", "time", "datacontenttype", "dataschema", "data", "traceparent",
		"tracestate":
		return true
	default:
		return false
	}
}
