package hostile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/publish"
)

// errorInputs are good events whose publisher answers with something that is not fit to be stored or shown.
func errorInputs() []input {
	var inputs []input
	add := func(name string, wants want, trouble func(message []byte, try int) error) *input {
		inputs = append(inputs, troubledInput(name, wants, trouble, func(*row) {}))
		return &inputs[len(inputs)-1]
	}
	for what, text := range sorted(errorTexts()) {
		err := errors.New(text)
		add("refused for good with "+what, rejected, func([]byte, int) error {
			return &publish.TerminalError{Reason: publish.ReasonRejected, Err: err}
		})
		add("refused for now with "+what, exhausted, func([]byte, int) error { return &publish.RejectedError{Err: err} })
	}
	once := func(err error) func([]byte, int) error {
		return func(_ []byte, try int) error {
			if try > 1 {
				return nil
			}
			return err
		}
	}
	leak := errors.New("dial postgres://app:" + secret + "@db/x: \x1b[31mrefused\x00\n2026-01-01 level=ERROR msg=forged")
	add("route that fails once", delivered, once(&publish.TopicError{Err: leak}))
	add("route that asks for a negative pause", delivered, once(&publish.TopicError{Err: leak, RetryAfter: -time.Hour}))
	add("error of no class", delivered, once(leak))
	add("deadline", delivered, once(fmt.Errorf("%w: %w", leak, context.DeadlineExceeded)))
	add("not sent", delivered, once(fmt.Errorf("%w: %w", publish.ErrNotSent, leak)))
	add("reason that is none", rejected, func([]byte, int) error {
		return &publish.TerminalError{Reason: "none\x00\x1b[2J", Err: leak}
	})
	add("too large", tooLarge, func([]byte, int) error {
		return &publish.TerminalError{Reason: publish.ReasonTooLarge, Err: leak}
	})
	add("body in the error", rejected, func(body []byte, _ int) error {
		return &publish.TerminalError{Reason: publish.ReasonRejected, Err: fmt.Errorf("invalid message %q", body)}
	})
	add("10,000 wraps", exhausted, func([]byte, int) error { return &publish.RejectedError{Err: wrapped(10_000, leak)} })
	add("class below 10,000 wraps", exhausted, func([]byte, int) error {
		return wrapped(10_000, &publish.RejectedError{Err: leak})
	})
	add("10,000 joined errors", exhausted, func([]byte, int) error {
		return &publish.RejectedError{Err: joined(10_000, leak)}
	})
	add("error without a cause", exhausted, func([]byte, int) error { return &publish.RejectedError{} })
	add("error whose text panics", exhausted, func([]byte, int) error {
		return &publish.RejectedError{Err: unspeakable{}}
	})
	for name, cause := range map[string]any{
		"text": "password=" + secret + " \x1b[2J", "error": leak, "10 MB": strings.Repeat("x", 10_000_000), "nil": nil,
		"text that panics": unspeakable{},
	} {
		add("panic with "+name, exhausted, func([]byte, int) error { panic(cause) }).panics = true
	}
	add("error whose chain panics", delivered, once(&chained{}))
	for what, attempts := range sorted(map[string]string{
		"as many attempts as there are numbers": "2147483647", "fewer attempts than none": "-2147483648",
	}) {
		inputs = append(inputs, troubledInput("refused for now after "+what, exhausted, func([]byte, int) error {
			return &publish.RejectedError{Err: leak}
		},
			func(r *row) { r.more = map[string]string{"attempt_count": attempts} }))
	}
	return inputs
}

// errorTexts are what brokers and drivers must not make us store. Secrets are in the forms that such errors have
// them in.
func errorTexts() map[string]string {
	const mega = 10_000_000
	return map[string]string{
		"10 MB": strings.Repeat("x", mega), "10 MB of words": strings.Repeat("word ", mega/5),
		"10 MB of emoji":  strings.Repeat("🐎", mega/4),
		"10 MB of quotes": strings.Repeat(`"`, mega), "10 MB of NUL": strings.Repeat("\x00", mega), "nothing": "",
		"spaces": " \t\n ",
		"a NUL":  "a\x00b", "bytes that are no text": "\xff\xfe\xc0\xaf", "half a character": "caf\xc3",
		"a surrogate": "\xed\xa0\x80",
		"colours":     "\x1b[31mred\x1b[0m", "a cleared screen": "\x1b[2J\x1b[H", "a window's title": "\x1b]0;owned\a",
		"C1 controls":       "\u009b31m\u0085",
		"a forged log line": "x\r\n{\"level\":\"ERROR\",\"msg\":\"forged\"}", "line separators": "a\u2028b\u2029c",
		"a right-to-left override": "\u202egnp.exe",
		"hidden characters":        "a\u200b\ufeff\u2060b", "10,000 combining marks": "a" + strings.Repeat("\u0301", 10_000),
		"format verbs": "%s%n%!d(MISSING)",
		"HTML":         `<script>alert(1)</script>`, "a quoted payload": `bad document: "{\"note\":\"` + secret + `\"}"`,
		"a DSN":         "dial postgres://app:" + secret + "@db:5432/x failed",
		"a keyword DSN": "host=db password=" + secret + " user=app",
		"a bearer":      "401: Authorization: Bearer " + secret, "an API key": "GET /x?api_key=" + secret + "&y=1",
		"a JSON secret":     `{"client_secret": "` + secret + `"}`,
		"a JWT":             "token eyJhbGciOiJIUzI1NiJ9." + secret + ".x",
		"a private key":     "-----BEGIN PRIVATE KEY-----\nMII" + secret + "\n-----END PRIVATE KEY-----",
		"an e-mail address": secret + "@example.com", "a row": "Failing row contains (1, " + secret + ", null).",
		"a key":               "Key (name)=(" + secret + ") already exists.",
		"a secret at the cut": strings.Repeat("word ", 409) + "password=" + secret,
		"a secret in 10 MB":   strings.Repeat("password="+secret+" ", mega/30),
	}
}

func troubledInput(name string, wants want, trouble func([]byte, int) error, change func(*row)) input {
	r := rows{group: "errors", around: true}
	r.add(name, always(wants), change)
	in := r.inputs[0]
	in.trouble = trouble
	write := in.write
	in.write = func(ctx context.Context, tx pgx.Tx, at *outlet) ([]event, error) {
		written, err := write(ctx, tx, at)
		for _, e := range written {
			at.troubles.add(e.id, trouble)
		}
		return written, err
	}
	return in
}

func wrapped(times int, err error) error {
	text := "wrapped: " + err.Error()
	for range times {
		err = &wrap{text, err}
	}
	return err
}

// wrap has a text of its own: 10,000 layers that each repeat those below would be about memory.
type wrap struct {
	text  string
	cause error
}

func (w *wrap) Error() string { return w.text }
func (w *wrap) Unwrap() error { return w.cause }

func joined(times int, err error) error {
	all := make([]error, times)
	for i := range all {
		all[i] = err
	}
	return errors.Join(all...)
}

// unspeakable panics when it is asked what it is.
type unspeakable struct{}

func (unspeakable) Error() string { panic("password=" + secret) }

// chained panics when it is asked for its cause.
type chained struct{}

func (*chained) Error() string { return "chained" }
func (*chained) Unwrap() error { panic("password=" + secret) }
