package deploy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What `eval "$(services/services env)"` leaves in a shell is no configuration of the publisher, which refuses every
// variable with its prefix that it does not know.
func TestTheAddressesOfTheServersAreNoKeys(t *testing.T) {
	t.Parallel()
	folder, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	text, code := execute(t, folder, `eval "$(services/services env)" && env | grep -c ^SERVICES_ && `+
		`exec outbox-publisher config show`,
		"PATH="+filepath.Dir(program(t, "outbox-publisher"))+":"+os.Getenv("PATH"), "HOME="+t.TempDir(),
		"POSTHASTE_DATABASE_URL=postgres://127.0.0.1/shop", "POSTHASTE_BROKER=nats", "POSTHASTE_NATS_URL=nats://127.0.0.1",
		"POSTHASTE_REGISTRY_FILE=examples/registry.yaml")
	if code != 0 || !strings.HasPrefix(text, "12\n") || !strings.Contains(text, "database.url") {
		t.Errorf("exit code %d\n%s", code, text)
	}
}
