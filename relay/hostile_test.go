package relay

import (
	"errors"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// A row that went around the checks becomes no message, and says why.
func TestAnImpossibleRowBecomesNoMessage(t *testing.T) {
	t.Parallel()
	created := func(year int) func(*core.Event) {
		return func(e *core.Event) { e.CreatedAt = time.Date(year, 6, 1, 0, 0, 0, 0, time.UTC) }
	}
	headers := func(text string) func(*core.Event) { return func(e *core.Event) { e.Headers = []byte(text) } }
	const time, texts = "created_at: the year is not between 1 and 9999", "headers: not an object of texts"
	for name, is := range map[string]struct {
		change func(*core.Event)
		detail string
	}{
		"year 0": {created(0), time}, "year 10000": {created(10000), time}, "year 294276": {created(294276), time},
		"year -4712": {created(-4712), time},
		"year 1":     {created(1), ""}, "year 9999": {created(9999), ""},
		"null among headers": {headers(`{"a":"b","h":null}`), texts}, "number among headers": {headers(`{"h":1}`), texts},
		"headers null":          {headers(`null`), texts},
		"header that says null": {headers(`{"null":"null"}`), ""},
		"null that is replaced": {headers(`{"h":null,"h":"x"}`), ""},
	} {
		message, failure := newTestSender(t, quiet).message(stored(is.change))
		switch {
		case is.detail == "" && (failure != nil || message == nil):
			t.Errorf("%s: %+v", name, failure)
		case is.detail != "" &&
			(failure == nil || failure.Class != core.Terminal || failure.Reason != string(outbox.InvalidPayload) ||
				failure.Detail != is.detail):
			t.Errorf("%s: %+v", name, failure)
		}
	}
}

// panicking is an error that cannot be looked at.
type panicking struct{}

func (panicking) Error() string { return "panicking" }
func (panicking) Unwrap() error { panic("password=hunter2") }

// An answer of a pipeliner is classified on the client's goroutine: a panic there would end the process.
func TestAnErrorThatPanicsIsUnknown(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"panicking": panicking{}, "x panicking": errors.Join(errors.New("x"), panicking{}),
	} {
		if got := classify(err); got != (core.Outcome{Class: core.Unknown, Detail: want}) {
			t.Errorf("%+v", got)
		}
	}
}

// fickle is a topic's error when it is looked at first, and panics then.
type fickle struct{ looks int }

func (*fickle) Error() string { return "fickle" }

func (f *fickle) As(target any) bool {
	topic, is := target.(**publish.TopicError)
	if !is {
		return false
	}
	if f.looks++; f.looks > 1 {
		panic("password=hunter2")
	}
	*topic = &publish.TopicError{Err: f}
	return true
}

func TestAnErrorThatPanicsLaterIsUnknown(t *testing.T) {
	t.Parallel()
	want := core.Outcome{Class: core.Unknown, Detail: "an error that cannot be looked at: it panics"}
	if got := classify(&fickle{}); got != want {
		t.Errorf("got %+v", got)
	}
}

// What no contract allows is not even looked at.
func TestAPayloadBeyondEveryContractIsTooLarge(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]string{
		outbox.MaxContractBytes + 1: publish.ReasonTooLarge, outbox.MaxContractBytes: string(outbox.InvalidPayload),
	} {
		_, failure := newTestSender(t, quiet).message(stored(func(e *core.Event) { e.Payload = make([]byte, size) }))
		if failure == nil || failure.Class != core.Terminal || failure.Reason != want {
			t.Errorf("%d bytes: %+v", size, failure)
		}
	}
}
