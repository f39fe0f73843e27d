// Package drivers_test runs the emit side over every driver and mapper that a Go program is likely to
// have, directly and through PgBouncer, and holds the GORM model against the live tables.
package drivers_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
)

func TestMain(m *testing.M) {
	// With PrepareStmt, GORM starts a goroutine that tidies its statements and has no way to stop it.
	os.Exit(goroutines.Run(m, goleak.IgnoreTopFunction("gorm.io/gorm/internal/lru.NewLRU[...].func1")))
}
