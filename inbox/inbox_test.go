package inbox

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
)

// asked is a conn that keeps what it is asked, and answers this.
func asked(answer string, err error) (conn, *[]any) {
	var sent []any
	return conn{schema: `we"ird`, query: func(statement string, args []any, into *string) error {
		sent = append([]any{statement}, args...)
		*into = answer
		return err
	}}, &sent
}

func TestAnErrorNamesEveryProblemAndNoValue(t *testing.T) {
	t.Parallel()
	c, sent := asked("1", nil)
	_, err := newer(c, "SECRET", outbox.Aggregate{
		Namespace: strings.Repeat("SECRET", 22), ID: strings.Repeat("SECRET", 100),
	}, 0)
	if !errors.Is(err, ErrRefused) || len(*sent) != 0 {
		t.Fatalf("got %v, and %d arguments were sent", err, len(*sent))
	}
	for _, want := range []string{
		"consumer: must be of a to z", "namespace: 132 bytes, the limit is 128", "aggregate type: missing",
		"aggregate id: 600 bytes, the limit is 512", "seq: not positive",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "SECRET") {
		t.Errorf("%v quotes a value", err)
	}
}

func TestOnlyOneAndZeroAreAnswers(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]bool{"0": false, "1": true} {
		c, sent := asked(answer, nil)
		if got, err := first(c, "mailer", outbox.NewID()); err != nil || got != want {
			t.Errorf("%q: got %t, %v", answer, got, err)
		}
		if statement := (*sent)[0].(string); !strings.Contains(statement, `INSERT INTO "we""ird".inbox_handled`) ||
			strings.Contains(statement, "{schema}") {
			t.Error(statement)
		}
	}
	for _, answer := range []string{"", "2", "t"} {
		c, _ := asked(answer, nil)
		if got, err := first(c, "mailer", outbox.NewID()); err == nil || got {
			t.Errorf("%q: got %t, %v", answer, got, err)
		}
	}
	c, _ := asked("1", errors.New("gone"))
	if got, err := first(c, "mailer", outbox.NewID()); err == nil || got {
		t.Errorf("after an error: got %t, %v", got, err)
	}
}

// FuzzConsumer: the rule in Go is that of the table.
func FuzzConsumer(f *testing.F) {
	rule := regexp.MustCompile(`\A[a-z0-9._-]{1,64}\z`)
	for _, name := range []string{
		"mailer", "", "A", "a b", "ü", "a\n", "\x00", strings.Repeat("x", 64), strings.Repeat("x", 65), "-._9",
	} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if problem := checkConsumer(name); (problem == "") != rule.MatchString(name) {
			t.Errorf("%q: %q", name, problem)
		}
	})
}
