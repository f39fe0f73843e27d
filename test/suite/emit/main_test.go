package emit

import (
	"os"
	"strconv"
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
)

// TestMain is also the entry of the process that TestFaultA1CrashBeforeCommit kills.
func TestMain(m *testing.M) {
	if url := os.Getenv(victimURL); url != "" {
		os.Exit(victim(url, os.Getenv(victimSchema)))
	}
	os.Exit(goroutines.Run(m, goroutines.Linked))
}

// atLeast reads how often to repeat something: the environment may ask for more than the short form,
// never for less.
func atLeast(t testing.TB, name string, short int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return short
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s=%q: a number is wanted", name, text)
	}
	return max(n, short)
}

// figure reports a number to the proof.
func figure(t testing.TB, name string, n int) {
	t.Helper()
	t.Attr(name, strconv.Itoa(n))
	t.Logf("%s=%d", name, n)
}
