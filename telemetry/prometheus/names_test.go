package prometheus

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden file anew")

// TestNames compares the contract with the names. To change a line that exists is to break somebody's dashboard.
func TestNames(t *testing.T) {
	t.Parallel()
	for golden, metrics := range map[string][]*metric{
		"testdata/metrics.golden": all, "testdata/consumers.golden": ofConsumers,
	} {
		var text strings.Builder
		for _, m := range metrics {
			fmt.Fprintf(&text, "%s %s {%s} %s\n", m.name, m.kind, strings.Join(m.labels, ","), m.help)
		}
		if *update {
			if err := os.WriteFile(golden, []byte(text.String()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if text.String() != string(want) {
			t.Errorf("the metrics are\n%s\nwant those of %s:\n%s", text.String(), golden, want)
		}
	}
}

// TestNamesFollowRules holds the names to the habits of Prometheus.
func TestNamesFollowRules(t *testing.T) {
	t.Parallel()
	well := regexp.MustCompile(`^posthaste_(build|relay|outbox|survey|consumer)_[a-z_]+$`)
	seen := map[string]bool{}
	for _, m := range slices.Concat(all, ofConsumers) {
		if !well.MatchString(m.name) || seen[m.name] {
			t.Errorf("%s: the name is not well made, or there twice", m.name)
		}
		seen[m.name] = true
		if (m.kind == "counter") != strings.HasSuffix(m.name, "_total") {
			t.Errorf("%s: a counter, and nothing else, ends with _total", m.name)
		}
		if strings.Contains(m.name, "_duration_") && !strings.HasSuffix(m.name, "_seconds") {
			t.Errorf("%s: times are in seconds", m.name)
		}
		if !strings.HasSuffix(m.help, ".") {
			t.Errorf("%s: the help is no sentence: %s", m.name, m.help)
		}
		for _, label := range m.labels {
			switch label {
			case "topic", "event_type", "class", "reason", "call", "state", "scope", "kind", "part", "version", "go_version",
				"consumer", "outcome":
			default:
				t.Errorf("%s: the label %s is not known to be bounded", m.name, label)
			}
		}
	}
}
