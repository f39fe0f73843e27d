package deploy

import (
	"strings"
	"testing"
	"time"
)

// unit reads the lines KEY=VALUE of the service; what may be there several times is joined by line breaks.
func unit(t *testing.T) map[string]string {
	t.Helper()
	lines := map[string]string{}
	for line := range strings.Lines(read(t, "deploy/systemd/outbox-publisher.service")) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), "="); found && !strings.HasPrefix(name, "#") {
			lines[name] = strings.TrimPrefix(lines[name]+"\n"+value, "\n")
		}
	}
	return lines
}

// scripts/check-deploy asks systemd itself whether the unit is one, and how much is open to it.
func TestTheUnit(t *testing.T) {
	t.Parallel()
	lines := unit(t)
	grace, err := time.ParseDuration(lines["TimeoutStopSec"] + "s")
	if err != nil {
		t.Fatal(err)
	}
	if err := enough(grace, defaultDrain(t)); err != nil {
		t.Error("TimeoutStopSec", err)
	}
	for name, want := range map[string]string{
		"DynamicUser": "yes", "ProtectSystem": "strict", "NoNewPrivileges": "yes", "CapabilityBoundingSet": "",
		"Restart": "always", "RestartPreventExitStatus": "2", "StartLimitIntervalSec": "0",
	} {
		if got, there := lines[name]; !there || got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if _, there := lines["KillSignal"]; there {
		t.Error("SIGTERM, the default, is what drains")
	}
}
