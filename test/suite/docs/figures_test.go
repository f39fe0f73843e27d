package docs

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var latencyPattern = regexp.MustCompile(`(?m)^bench-emit .*\blatency1=(\d+\.\d+)`)

// A figure on README is one that a command printed, and stands in docs/internals/benchmarks.md.
func TestREADMEHasTheFiguresOfTheBenchmarks(t *testing.T) {
	t.Parallel()
	found := latencyPattern.FindStringSubmatch(read(t, "docs/internals/benchmarks.md"))
	if found == nil {
		t.Fatal("docs/internals/benchmarks.md has no last line of bench-emit")
	}
	latency, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	said := fmt.Sprintf("an emit takes %.1f times as long as a bare INSERT", latency)
	if readme := flat(read(t, "README.md")); !strings.Contains(readme, said) {
		t.Errorf("README.md does not say %q", said)
	}
}

// Numbers of points go stale with the next point.
func TestNoPageCountsTheCrashPoints(t *testing.T) {
	t.Parallel()
	counted := regexp.MustCompile(`\b\d+ (?:named |crash )points`)
	for name, text := range files(t) {
		if strings.HasSuffix(name, ".md") && name != "CHANGELOG.md" {
			if number := counted.FindString(flat(text)); number != "" {
				t.Errorf("%s says %q: leave the number out", name, number)
			}
		}
	}
	if !counted.MatchString("at 54 named points") {
		t.Error("the pattern finds nothing")
	}
}
