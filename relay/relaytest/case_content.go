package relaytest

import (
	"context"
	"fmt"
	"strings"

	"github.com/posthaste-dev/posthaste/publish"
)

// fidelity: bytes and attributes arrive as they were sent (RL-4).
func fidelity(ctx context.Context, e *env) error {
	publisher, err := e.open(ctx)
	if err != nil {
		return err
	}
	messages := faithfulMessages(e.topic)
	if err := e.mustPublish(ctx, publisher, messages...); err != nil {
		return err
	}
	if _, err := e.checkArrived(ctx, messages, false); err != nil {
		return err
	}
	if e.can(Key) {
		e.use(Key) // checkArrived compares it
	}
	return nil
}

func faithfulMessages(topic string) []*publish.Message {
	number := int64(0)
	next := func(change func(m *publish.Message)) *publish.Message {
		number++
		message := NewMessage(topic, 1, number)
		change(message)
		return message
	}
	body := func(text string) *publish.Message {
		return next(func(m *publish.Message) { m.Body = []byte(text) })
	}
	attribute := func(name, value string) *publish.Message {
		return next(func(m *publish.Message) { m.Attributes[name] = value })
	}
	everyByte := make([]byte, 256)
	for i := range everyByte {
		everyByte[i] = byte(i)
	}
	return []*publish.Message{
		next(func(*publish.Message) {}),
		body(`{"a":1,"a":2, "z" : 0.10e+1, "big":12345678901234567890}`),
		body("{\r\n\t\"text\": \"Grüße, \u6771\u4eac, 🚚, \\u0041\u2028\"\n}\n"),
		body(string(everyByte)), // a stored payload is JSON today, and any bytes one day
		attribute("tenant_id", "tenant-7"),
		attribute("dedupe_key", "checkout:77"),
		attribute("tenant_id", "Zürich / \u6771\u4eac"),
		attribute("Trace.Parent-ID_1", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
		attribute("UPPER", "and lower case are two names"),
		next(func(m *publish.Message) {
			m.AggregateID = "a b/c:d%e"
			m.Namespace = "billing"
			m.Key = "billing/order/" + m.AggregateID
			m.Attributes["aggregate_id"], m.Attributes["namespace"] = m.AggregateID, m.Namespace
		}),
		next(func(m *publish.Message) {
			for i := range 16 { // what a broker with few attributes still takes is up to the adapter; this many it must
				m.Attributes[fmt.Sprintf("h%d", i)] = strings.Repeat("x", 100)
			}
		}),
	}
}

// hostileAttributes: a value arrives as it was sent, or the message is rejected for good. Control
// characters cannot come from Emit, but a row that was inserted by hand may have them.
func hostileAttributes(ctx context.Context, e *env) error {
	publisher, err := e.open(ctx)
	if err != nil {
		return err
	}
	values := []struct {
		value     string
		mayReject bool // the message may be rejected instead
	}{
		{value: ""},
		{value: " spaces around "},
		{value: `"quoted", <b>&amp;</b>, '; DROP TABLE x; --, \n, %0d%0a, =?utf-8?q?x?=, =?utf-8?b?eA==?=`},
		{value: "=?utf-8?b?eA==?="},
		{value: "a: b"},
		{value: "Grüße \u6771\u4eac 🚚 \u00a0\u202e"},
		{value: strings.Repeat("é", 512)},
		{value: "one\r\nInjected: two", mayReject: true},
		{value: "one\nInjected: two", mayReject: true},
		{value: "nul\x00 tab\t bell\a", mayReject: true},
		{value: "not \xff UTF-8", mayReject: true},
	}
	var taken []*publish.Message
	for i, hostile := range values {
		message := NewMessage(e.topic, 1, int64(i))
		message.Attributes["hostile"] = hostile.value
		err := e.publish(ctx, publisher, message, e.harness.Deadline)
		switch {
		case err == nil:
			taken = append(taken, message)
		case !hostile.mayReject || publish.ClassOf(err) != publish.Terminal:
			e.problemf("a message whose attribute is %q: %s error: %v", hostile.value, publish.ClassOf(err), err)
		}
	}
	_, err = e.checkArrived(ctx, taken, false)
	return err
}

// acknowledgedMeansStored: when Publish returns nil, the broker has the message at that moment.
func acknowledgedMeansStored(ctx context.Context, e *env) error {
	publisher, err := e.open(ctx)
	if err != nil {
		return err
	}
	for i := range 10 {
		message := NewMessage(e.topic, i, int64(i))
		if err := e.mustPublish(ctx, publisher, message); err != nil {
			return err
		}
		arrived, err := e.arrived(ctx)
		if err != nil {
			return err
		}
		if copies(arrived)[message.ID.String()] == 0 {
			e.problemf("event %d: Publish returned nil before the broker had the message", i)
		}
	}
	return nil
}
