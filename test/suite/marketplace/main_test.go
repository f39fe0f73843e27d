package marketplace

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
	"github.com/posthaste-dev/posthaste/test/kit/process"
)

// programs is the folder of the marketplace's programs.
var programs string

func TestMain(m *testing.M) {
	for _, command := range []string{"setup", "api", "outbox-publisher", "worker", "load", "report"} {
		program, err := process.Built(context.Background(), "examples/marketplace/cmd/"+command)
		if err != nil {
			panic(err)
		}
		programs = filepath.Dir(program)
	}
	os.Exit(goroutines.Run(m))
}
