package check_test

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/internal/check"
)

func written(t *testing.T, h check.History) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := h.Write(&file); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	history := generate(3, 7, 80)
	read, err := check.ReadHistory(bytes.NewReader(written(t, history)))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(history, read) {
		t.Error("a history changes when it is written and read")
	}
}

// A file that was cut anywhere never passes, because the end is missing; only the last line break may be.
func TestATornFileNeverPasses(t *testing.T) {
	t.Parallel()
	file := written(t, generate(5, 2, 4))
	for cut := 0; cut < len(file)-1; cut += 1 + cut%13 { // odd strides: every part of a line is met
		c := check.New()
		if err := c.Read(bytes.NewReader(file[:cut])); err != nil {
			t.Fatal(err)
		}
		if v := c.Verdict(check.Floor{}); v.Pass() || v.Count(check.Malformed) > 0 || v.Count(check.Torn) > 1 {
			t.Fatalf("cut at %d: %s", cut, v.Line())
		}
	}
}

func TestATornDeliveryIsLost(t *testing.T) {
	t.Parallel()
	rest := written(t, check.History{wrote(1, 2), end()})
	deliveries := written(t, check.History{delivery(1, 1), delivery(2, 2)})
	last := bytes.IndexByte(deliveries, '\n') + 1
	for cut := last + 1; cut < len(deliveries)-1; cut++ {
		c := check.New()
		if err := errors.Join(c.Read(bytes.NewReader(deliveries[:cut])), c.Read(bytes.NewReader(rest))); err != nil {
			t.Fatal(err)
		}
		if v := c.Verdict(check.Floor{}); v.Count(check.Torn) != 1 || v.Count(check.Lost) != 1 ||
			v.Count(check.Malformed) != 0 {
			t.Fatalf("cut at %d: %s", cut, v.Line())
		}
	}
}

func TestLinesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"no JSON":          "{",
		"another version":  `{"end":{"surprise":1}}`,
		"two records":      `{"end":{}}{"end":{}}`,
		"two kinds":        `{"end":{},"effect":{"id":"00000000-0000-0000-0000-000000000001","count":1}}`,
		"no kind":          `{}`,
		"an unknown state": `{"row":{"id":"00000000-0000-0000-0000-000000000001","state":"lost"}}`,
		"a short sum":      `{"delivery":{"index":1,"id":"00000000-0000-0000-0000-000000000001","topic":"t","payload":"00"}}`,
		"too long":         `{"fault":{"kind":"` + strings.Repeat("x", 5<<20) + `"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := check.New()
			if err := c.Read(strings.NewReader(line + "\n\r\n")); err != nil {
				t.Fatal(err)
			}
			if v := c.Verdict(check.Floor{}); v.Count(check.Malformed) != 1 {
				t.Error(v.Line())
			}
		})
	}
}

func TestReadErrorsAreReturned(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	if err := check.New().Read(io.MultiReader(strings.NewReader("{}"), errorReader{broken})); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if _, err := check.ReadHistory(strings.NewReader("{\n")); err == nil {
		t.Error("ReadHistory takes a line that is no record")
	}
}

type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.err }

func TestUnresolvedAreListed(t *testing.T) {
	t.Parallel()
	c := check.New()
	for _, r := range (check.History{
		tx(check.Unknown, event(2)), tx(check.Begun, event(1)), wrote(3), tx(check.Failed, event(4)),
	}) {
		c.Add(r)
	}
	want := []string{tx(check.Begun, event(1)).Tx.Key, tx(check.Unknown, event(2)).Tx.Key}
	slices.Sort(want)
	if got := c.Unresolved(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
