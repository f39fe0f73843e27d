package relaytest

import (
	"context"
	"fmt"
	"strings"

	"github.com/posthaste-dev/posthaste/relay"
)

// fidelity: bytes and attributes arrive as they were sent (RL-4).
func fidelity(ctx context.Context, s *scene) error {
	publisher, err := s.open(ctx)
	if err != nil {
		return err
	}
	messages := faithfulMessages(s.topic)
	if err := s.mustPublish(ctx, publisher, messages...); err != nil {
		return err
	}
	if _, err := s.checkArrived(ctx, messages, false); err != nil {
		return err
	}
	if s.can(Key) {
		s.use(Key) // checkArrived compares it
	}
	return nil
}

func faithfulMessages(topic string) []*relay.Message {
	number := int64(0)
	next := func(change func(m *relay.Message)) *relay.Message {
		number++
		message := NewMessage(topic, 1, number)
		change(message)
		return message
	}
	body := func(text string) *relay.Message {
		return next(func(m *relay.Message) { m.Body = []byte(text) })
	}
	attribute := func(name, value string) *relay.Message {
		return next(func(m *relay.Message) { m.Attributes[name] = value })
	}
	everyByte := make([]byte, 256)
	for i := range everyByte {
		everyByte[i] = byte(i)
	}
	return []*relay.Message{
		next(func(*relay.Message) {}),
		body(`{"a":1,"a":2, "z" : 0.10e+1, "big":12345678901234567890}`),
		body("{\r\n\t\"text\": \"Grüße, \u6771\u4eac, 🚚, \\u0041\u2028\"\n}\n"),
		body(string(everyByte)), // a stored payload is JSON today, and any bytes one day
		attribute("tenant_id", "tenant-7"),
		attribute("dedupe_key", "checkout:77"),
		attribute("tenant_id", "Zürich / \u6771\u4eac"),
		attribute("Trace.Parent-ID_1", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
		attribute("UPPER", "and lower case are two names"),
		next(func(m *relay.Message) {
			m.AggregateID = "a b/c:d%e"
			m.Namespace = "billing"
			m.Key = "billing/order/" + m.AggregateID
			m.Attributes["aggregate_id"], m.Attributes["namespace"] = m.AggregateID, m.Namespace
		}),
		next(func(m *relay.Message) {
			for i := range 16 { // what a broker with few attributes still takes is up to the adapter; this many it must
				m.Attributes[fmt.Sprintf("h%d", i)] = strings.Repeat("x", 100)
			}
		}),
	}
}

// hostileAttributes: a value arrives as it was sent, or the message is refused for good. Control
// characters cannot come from Emit, but a row that was inserted by hand may have them.
func hostileAttributes(ctx context.Context, s *scene) error {
	publisher, err := s.open(ctx)
	if err != nil {
		return err
	}
	values := []struct {
		value  string
		refuse bool // the message may be refused instead
	}{
		{value: ""},
		{value: " spaces around "},
		{value: `"quoted", <b>&amp;</b>, '; DROP TABLE x; --, \n, %0d%0a, =?utf-8?q?x?=, =?utf-8?b?eA==?=`},
		{value: "=?utf-8?b?eA==?="},
		{value: "a: b"},
		{value: "Grüße \u6771\u4eac 🚚 \u00a0\u202e"},
		{value: strings.Repeat("é", 512)},
		{value: "one\r\nInjected: two", refuse: true},
		{value: "one\nInjected: two", refuse: true},
		{value: "nul\x00 tab\t bell\a", refuse: true},
		{value: "not \xff UTF-8", refuse: true},
	}
	var taken []*relay.Message
	for i, hostile := range values {
		message := NewMessage(s.topic, 1, int64(i))
		message.Attributes["hostile"] = hostile.value
		err := s.publish(ctx, publisher, message, s.harness.Deadline)
		switch {
		case err == nil:
			taken = append(taken, message)
		case !hostile.refuse || classOf(err) != terminal:
			s.problemf("a message whose attribute is %q: %s error: %v", hostile.value, classOf(err), err)
		}
	}
	_, err = s.checkArrived(ctx, taken, false)
	return err
}

// acknowledgedMeansStored: when Publish returns nil, the broker has the message at that moment.
func acknowledgedMeansStored(ctx context.Context, s *scene) error {
	publisher, err := s.open(ctx)
	if err != nil {
		return err
	}
	for i := range 10 {
		message := NewMessage(s.topic, i, int64(i))
		if err := s.mustPublish(ctx, publisher, message); err != nil {
			return err
		}
		arrived, err := s.arrived(ctx)
		if err != nil {
			return err
		}
		if copies(arrived)[message.ID.String()] == 0 {
			s.problemf("event %d: Publish returned nil before the broker had the message", i)
		}
	}
	return nil
}
