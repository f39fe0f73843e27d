package check_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/internal/check"
)

// FuzzCheckerHistory: whatever the bytes, the checker answers; damage to a valid file never breaks it; and
// a history with something wrong in it never passes.
func FuzzCheckerHistory(f *testing.F) {
	var valid bytes.Buffer
	if err := generate(1, 2, 4).Write(&valid); err != nil {
		f.Fatal(err)
	}
	f.Add(valid.Bytes())
	f.Add(valid.Bytes()[:valid.Len()/2])
	f.Add([]byte(`{"tx":{"key":"a","events":[{"id":"00000000-0000-0000-0000-000000000001","topic":"t",` +
		`"aggregate":"a"}]}}` + "\n"))
	for i := range mutations {
		f.Add([]byte{byte(i), 1, 2, 3})
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		answers(t, data)
		if len(data) > 256 {
			return // a short input is enough to choose a mutation
		}
		var seed [8]byte
		copy(seed[:], data)
		answers(t, damaged(valid.Bytes(), data))
		m := &mutations[int(seed[0])%len(mutations)]
		history, is := mutate(m, binary.LittleEndian.Uint64(seed[:])>>8)
		if !is {
			return
		}
		if problem := m.problem(history.Check(check.Floor{})); problem != "" {
			t.Fatalf("%s: %s", m.name, problem)
		}
	})
}

// damaged returns the file with some of its bytes replaced: pairs of an offset and a value.
func damaged(file, with []byte) []byte {
	broken := bytes.Clone(file)
	for ; len(with) >= 3; with = with[3:] {
		broken[(int(with[0])<<8|int(with[1]))%len(broken)] = with[2]
	}
	return broken
}

// answers checks a file and checks what must hold for every verdict.
func answers(t *testing.T, file []byte) {
	t.Helper()
	c := check.New()
	if err := c.Read(bytes.NewReader(file)); err != nil {
		t.Fatal(err)
	}
	c.Unresolved()
	v := c.Verdict(check.Floor{})
	sum := v.Count(check.DeliveredDistinct) + v.Count(check.Lost) + v.Count(check.DeadLettered) +
		v.Count(check.DiscardedByName) + v.Count(check.Pending)
	// Delivered events may be stuck or held as well.
	if rest := v.Count(check.Committed) - sum; rest < 0 || rest > v.Count(check.Stuck)+v.Count(check.HeldExplained) {
		t.Errorf("committed events are under more or less than one counter: %s", v.Line())
	}
	if v.Pass() && len(v.Problems()) > 0 {
		t.Errorf("it passes with problems: %s", v.Line())
	}
	if strings.Contains(v.Line(), "\n") {
		t.Errorf("more than one line: %q", v.Line())
	}
}
