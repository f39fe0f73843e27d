package metrics

import (
	"os"
	"testing"

	"github.com/posthaste-dev/posthaste/test/calm"
)

func TestMain(m *testing.M) { os.Exit(calm.Run(m)) }
