package gotest

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadsGoTest(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for _, l := range []Line{
		{Action: "run", Package: "example.com/test/suite/emit", Test: "TestA/postgres18"},
		{Action: "attr", Package: "example.com/test/suite/emit", Test: "TestA/postgres18", Key: "inputs", Value: "7"},
		{Action: "output", Package: "example.com/test/suite/emit", Test: "TestA/postgres18", Output: "said\n"},
		{Action: "pass", Package: "example.com/test/suite/emit", Test: "TestA/postgres18"},
		{Action: "fail", Package: "example.com/test/suite/emit"},
	} {
		encoded, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(append(encoded, '\n'))
	}
	found := New()
	if err := found.read(strings.NewReader(text.String()), all); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(found.Outcomes, map[string]string{"emit.TestA/postgres18": "pass", "emit": "fail"}) {
		t.Errorf("outcomes: %v", found.Outcomes)
	}
	if found.Figures["inputs"]["emit.TestA/postgres18"] != 7 || found.Outputs["emit.TestA/postgres18"] != "said\n" {
		t.Errorf("figures: %v, outputs: %q", found.Figures, found.Outputs)
	}
	if err := found.read(strings.NewReader("no JSON\n"), all); err == nil {
		t.Error("what is not JSON was read")
	}
}

func all(*Line) bool { return true }

// Of an earlier run only what is asked for counts: another package may have tests of the same name.
func TestLoadsWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "results.jsonl")
	text := `{"Action":"pass","Package":"example.com/test/suite/emit","Test":"TestA/postgres18"}
{"Action":"fail","Package":"example.com/test/suite/emit","Test":"TestAlike"}
{"Action":"pass","Package":"example.com/test/suite/emit"}
{"Action":"fail","Package":"example.com/other/emit","Test":"TestA"}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	some, whole := New(), New()
	if err := errors.Join(some.Load(file, "example.com/test/suite/emit", "TestA"),
		whole.Load(file, "example.com/test/suite/emit")); err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"emit.TestA/postgres18": "pass", "emit": "pass"}; !maps.Equal(some.Outcomes, want) {
		t.Errorf("one test: %v", some.Outcomes)
	}
	if want := map[string]string{
		"emit.TestA/postgres18": "pass", "emit.TestAlike": "fail", "emit": "pass",
	}; !maps.Equal(whole.Outcomes, want) {
		t.Errorf("all tests: %v", whole.Outcomes)
	}
	if err := New().Load(file+"x", "example.com/test/suite/emit"); err == nil {
		t.Error("results that are not there were read")
	}
}
