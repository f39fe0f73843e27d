package relay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/posthaste-dev/posthaste/internal/measure"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// formatted is what becomes of an event with this configuration.
func formatted(t *testing.T, p *core.Publish, change func(*Config)) *publish.Message {
	t.Helper()
	config := complete(t)
	change(&config)
	r, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	message, failure := newSender(t.Context(), &r.config, newClock(), &sync.WaitGroup{}, make(chan result, 1)).message(p)
	if failure != nil {
		t.Fatalf("refused: %+v", failure)
	}
	return message
}

func asCloudEvents(config *Config) { config.Format = publish.CloudEvents }

// The attributes of an envelope are there, those of CloudEvents come in addition, and the body is the same.
func TestACloudEvent(t *testing.T) {
	t.Parallel()
	common := map[string]string{
		"ce-specversion": "1.0", "ce-type": "order_placed", "ce-datacontenttype": "application/json",
		"ce-time": "2026-03-01T12:30:15Z",
	}
	occurred := func(at string) func(*core.Event) {
		return func(e *core.Event) {
			e.Payload = []byte(strings.Replace(string(e.Payload), "2026-03-01T12:30:15Z", at, 1))
		}
	}
	for name, is := range map[string]struct {
		change func(*core.Event)
		config func(*Config)
		want   map[string]string // "" is none
	}{
		"plain": {want: map[string]string{"ce-source": "/default", "ce-subject": "order/7"}},
		"namespace": {change: func(e *core.Event) {
			e.Aggregate.Namespace = "billing"
		}, want: map[string]string{"ce-source": "/billing", "ce-subject": "order/7"}},
		"source": {
			config: func(c *Config) { c.Source = "https://shop.example.com/%7Eorders" },
			want:   map[string]string{"ce-source": "https://shop.example.com/%7Eorders", "ce-subject": "order/7"},
		},
		"odd id": {
			change: func(e *core.Event) { e.Aggregate.ID = `a/b "ü" 100%` },
			want:   map[string]string{"ce-source": "/default", "ce-subject": `order/a/b "ü" 100%`},
		},
		"another zone": {
			change: occurred("2026-03-01T01:00:00.5+02:00"),
			want:   map[string]string{"ce-source": "/default", "ce-subject": "order/7", "ce-time": "2026-02-28T23:00:00.5Z"},
		},
		"a time that is none in UTC": {
			change: occurred("9999-12-31T23:00:00-05:00"),
			want:   map[string]string{"ce-source": "/default", "ce-subject": "order/7", "ce-time": ""},
		},
		"a trace": {
			change: func(e *core.Event) { e.Headers = []byte(`{"traceparent":"00-1-2-01","tracestate":"a=b"}`) },
			want: map[string]string{
				"ce-source": "/default", "ce-subject": "order/7", "ce-traceparent": "00-1-2-01", "ce-tracestate": "a=b",
			},
		},
	} {
		if is.change == nil {
			is.change = func(*core.Event) {}
		}
		p := stored(is.change)
		plain := formatted(t, p, func(*Config) {})
		message := formatted(t, p, func(c *Config) {
			asCloudEvents(c)
			if is.config != nil {
				is.config(c)
			}
		})
		want := maps.Clone(plain.Attributes)
		maps.Copy(want, common)
		maps.Copy(want, is.want)
		want["ce-id"] = p.Event.ID.String()
		maps.DeleteFunc(want, func(_, value string) bool { return value == "" })
		if !maps.Equal(message.Attributes, want) {
			t.Errorf("%s: the attributes are %v, want %v", name, message.Attributes, want)
		}
		if string(message.Body) != string(p.Event.Payload) || message.Key != plain.Key || want["event_id"] == "" {
			t.Errorf("%s: the message is %+v", name, message)
		}
	}
}

// A header cannot speak for the event, and what cannot be an attribute does not travel as one.
func TestHeadersDoNotStandForACloudEvent(t *testing.T) {
	t.Parallel()
	headers := `{"ce-id":"x","ce-source":"x","ce-type":"x","ce-subject":"x","ce-time":"x","ce-specversion":"x",` +
		`"ce-datacontenttype":"x",
		"ce-dataschema":"x","ce-data":"x","ce-traceparent":"x","ce-":"x","ce-a_b":"x","ce-A":"x",
		"Ce-Id":"x","CE-ID":"x","Content-Type":"x","content-type":"x",
		"ce-partitionkey":"mine","other":"mine","cer":"mine","ce":"mine","a-ce-id":"mine"}`
	p := stored(func(e *core.Event) { e.Headers = []byte(headers) })
	mine := 0
	for name, value := range formatted(t, p, asCloudEvents).Attributes {
		if value == "x" {
			t.Errorf("%s is what the header says", name)
		}
		if value == "mine" {
			mine++
		}
	}
	if mine != 5 {
		t.Errorf("%d of 5 harmless headers are there", mine)
	}
	plain := formatted(t, p, func(*Config) {}).Attributes
	if plain["ce-id"] != "x" || plain["Content-Type"] != "x" {
		t.Error("an envelope's headers are the producer's own business")
	}
}

func TestEveryTopicHasItsFormat(t *testing.T) {
	t.Parallel()
	for name, is := range map[string]struct {
		format  publish.Format
		formats map[string]publish.Format
		want    bool
	}{
		"default":  {want: false},
		"all":      {format: publish.CloudEvents, want: true},
		"this one": {formats: map[string]publish.Format{"orders": publish.CloudEvents}, want: true},
		"all but this one": {
			format: publish.CloudEvents, formats: map[string]publish.Format{"orders": publish.Envelope}, want: false,
		},
		"said twice, and agreed": {
			format: publish.CloudEvents, formats: map[string]publish.Format{"orders": publish.CloudEvents}, want: true,
		},
		"the default, in writing": {format: publish.Envelope, want: false},
	} {
		message := formatted(t, stored(), func(c *Config) { c.Format, c.Formats = is.format, is.formats })
		if _, got := message.Attributes["ce-id"]; got != is.want {
			t.Errorf("%s: a CloudEvent: %v", name, got)
		}
	}
}

func TestInvalidFormatsAreNamedAllAtOnce(t *testing.T) {
	t.Parallel()
	config := complete(t)
	config.Format, config.Source = "avro", "/my shop"
	config.Formats = map[string]publish.Format{"orders": "CloudEvents", "order": publish.CloudEvents}
	_, err := New(config)
	for _, want := range []string{
		`Format: "avro", must be one of envelope, cloudevents`, `Formats: topic "orders": "CloudEvents", must be one of`,
		`Formats: topic "order": no contract has it; those that are: orders`, "Source: must be a URI",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %s: %v", want, err)
		}
	}
	for source, good := range map[string]bool{
		"/shop": true, "https://shop.example.com/a?b#c": true, "urn:shop": true, "mailto:a@example.com": true,
		"/caf%C3%A9": true, "shop": true,
		"/café": false, "a b": false, "%zz": false, "http://[": false, `/"x"`: false, "/a\n": false,
		"/" + strings.Repeat("a", 1024): false,
	} {
		if err := checkSource(source); (err == nil) != good {
			t.Errorf("source %.40q: %v", source, err)
		}
	}
}

// Without the check of contracts, a payload that is no envelope has no ce-time, and is dead rather than half a
// CloudEvent.
func TestWhatIsNoEnvelopeIsNoCloudEvent(t *testing.T) {
	t.Parallel()
	config := complete(t)
	config.Format = publish.CloudEvents
	r, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	p := stored(func(e *core.Event) { e.Payload = []byte(`{"secret":"4111"}`) })
	unchecked := measure.With(t.Context(), measure.Control{NoContractCheck: true})
	_, failure := newSender(unchecked, &r.config, newClock(), &sync.WaitGroup{}, make(chan result, 1)).message(p)
	if failure == nil || failure.Class != core.Terminal || failure.Reason != string(outbox.InvalidPayload) ||
		strings.Contains(failure.Detail, "4111") {
		t.Errorf("got %+v", failure)
	}
}

func TestClassesHaveNames(t *testing.T) {
	t.Parallel()
	cause := errors.New("x")
	for want, err := range map[string]error{
		"published": nil, "rejected": &publish.RejectedError{Err: cause},
		"terminal":    &publish.TerminalError{Reason: publish.ReasonTooLarge, Err: cause},
		"topic_fault": fmt.Errorf("y: %w", &publish.TopicError{Err: cause}), "not_sent": publish.ErrNotSent,
		"unknown": context.DeadlineExceeded,
	} {
		if got := publish.ClassOf(err); string(got) != want {
			t.Errorf("%v is %q, want %q", err, got, want)
		}
	}
}

func BenchmarkMessage(b *testing.B) {
	for _, format := range publish.Formats() {
		b.Run(string(format), func(b *testing.B) {
			s := newTestSender(b, quiet)
			s.config.Format = format
			p := stored()
			for b.Loop() {
				p.DecidedAt = s.clock.now()
				if _, failure := s.message(p); failure != nil {
					b.Fatal(failure)
				}
			}
		})
	}
}
