package doctor

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/relay/operator/doctor"
)

var update = flag.Bool("update", false, "write the table of findings anew")

// TestThePageListsEveryFinding: docs/operate/doctor.md has the table that the program's list makes.
func TestThePageListsEveryFinding(t *testing.T) {
	t.Parallel()
	const page, begin, end = "../../../docs/operate/doctor.md", "<!-- findings -->\n", "<!-- end of findings -->\n"
	table := "| stage | code | severity | why it matters |\n|---|---|---|---|\n"
	seen := map[string]bool{}
	for _, kind := range doctor.Kinds {
		if seen[kind.Code] {
			t.Errorf("%s is there twice", kind.Code)
		}
		seen[kind.Code] = true
		table += fmt.Sprintf("| %s | `%s` | %s | %s |\n", kind.Stage, kind.Code, kind.Severity, kind.Cause)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), begin)
	got, after, found := strings.Cut(rest, end)
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+table+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !found || got != table {
		t.Errorf("%s has another table: go test ./test/suite/doctor -run TestThePageListsEveryFinding -update", page)
	}
	for _, f := range faults {
		if !seen[f.code] {
			t.Errorf("a fault is planted for %s, which is no finding", f.code)
		}
	}
}

// TestTheDoctorAsksAsTheRelayDoes: the statement about the sequence is the relay's own.
func TestTheDoctorAsksAsTheRelayDoes(t *testing.T) {
	t.Parallel()
	relays, err := os.ReadFile("../../../relay/sql/sequence.sql")
	if err != nil {
		t.Fatal(err)
	}
	doctors, err := os.ReadFile("../../../relay/operator/doctor/sql/sequence.sql")
	if err != nil || string(relays) != string(doctors) {
		t.Errorf("relay/sql/sequence.sql and relay/operator/doctor/sql/sequence.sql differ (%v)", err)
	}
}
