package gotest

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
)

func TestReadsGoTest(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for _, l := range []Line{
		{Action: "run", Package: "example.com/test/emit", Test: "TestA/postgres18"},
		{Action: "attr", Package: "example.com/test/emit", Test: "TestA/postgres18", Key: "inputs", Value: "7"},
		{Action: "output", Package: "example.com/test/emit", Test: "TestA/postgres18", Output: "said\n"},
		{Action: "pass", Package: "example.com/test/emit", Test: "TestA/postgres18"},
		{Action: "fail", Package: "example.com/test/emit"},
	} {
		encoded, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(append(encoded, '\n'))
	}
	found := New()
	if err := found.read(strings.NewReader(text.String())); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(found.Outcomes, map[string]string{"emit.TestA/postgres18": "pass", "emit": "fail"}) {
		t.Errorf("outcomes: %v", found.Outcomes)
	}
	if found.Figures["inputs"]["emit.TestA/postgres18"] != 7 || found.Outputs["emit.TestA/postgres18"] != "said\n" {
		t.Errorf("figures: %v, outputs: %q", found.Figures, found.Outputs)
	}
	if err := found.read(strings.NewReader("no JSON\n")); err == nil {
		t.Error("what is not JSON was read")
	}
}
