package operator

import (
	"flag"
	"os"
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
)

// TestMain runs more tests at a time than there are processors: most of them wait for a relay.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "14"); err != nil {
		panic(err)
	}
	os.Exit(goroutines.Run(m, goroutines.Linked))
}
