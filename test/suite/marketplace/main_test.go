package marketplace

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
)

// programs is the folder of the marketplace's programs, built once.
var programs string

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "posthaste-marketplace-")
	if err != nil {
		panic(err)
	}
	programs = folder
	build := exec.Command("go", "build", "-o", folder+"/", "./cmd/...")
	build.Dir = "../../../examples/marketplace"
	if output, err := build.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("go build: %v\n%s", err, output))
	}
	code := goroutines.Run(m)
	_ = os.RemoveAll(folder)
	os.Exit(code)
}
