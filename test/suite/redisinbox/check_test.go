package redisinbox

import (
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/posthaste-dev/posthaste/inbox/redisinbox"
)

// codes are the findings of a check, with their levels.
func codes(t *testing.T, guard *redisinbox.Guard) map[string]slog.Level {
	t.Helper()
	findings, err := guard.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	levels := map[string]slog.Level{}
	for _, finding := range findings {
		if _, twice := levels[finding.Code]; twice || finding.Text == "" {
			t.Errorf("%+v", finding)
		}
		levels[finding.Code] = finding.Level
	}
	return levels
}

func wantFinding(t *testing.T, guard *redisinbox.Guard, code string, want bool) {
	t.Helper()
	if _, found := codes(t, guard)[code]; found != want {
		t.Errorf("the check finds %v; %s is wanted: %v", codes(t, guard), code, want)
	}
}

func TestCheckOfServers(t *testing.T) {
	t.Parallel()
	healthy := redisinbox.Config{OutboxRetention: 720 * time.Hour}
	for name, test := range map[string]struct {
		settings []string
		want     map[string]slog.Level
	}{
		"as it should be": {
			[]string{"--appendonly", "yes", "--maxmemory", "100mb", "--maxmemory-policy", "noeviction"}, map[string]slog.Level{},
		},
		"no memory of restarts": {
			nil,
			map[string]slog.Level{"no_persistence": slog.LevelInfo},
		},
		"evicts": {
			[]string{"--appendonly", "yes", "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lfu"},
			map[string]slog.Level{"may_evict": slog.LevelWarn},
		},
		"evicts as soon as there is a limit": {
			[]string{"--appendonly", "yes", "--maxmemory-policy", "volatile-ttl"},
			map[string]slog.Level{"may_evict": slog.LevelWarn},
		},
		"tells nothing": {
			[]string{"--user", "default", "on", "nopass", "~*", "+@all", "-info", "-config"},
			map[string]slog.Level{"server_unknown": slog.LevelInfo},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := startServer(t, test.settings...)
			got := codes(t, newGuard(t, connect(t, server.address), healthy))
			if len(got) != len(test.want) {
				t.Fatalf("got %v, want %v", got, test.want)
			}
			for code, level := range test.want {
				if found, ok := got[code]; !ok || found != level {
					t.Errorf("got %v, want %v", got, test.want)
				}
			}
		})
	}
}

// CONFIG is forbidden where Redis is rented; INFO says enough.
func TestCheckNeedsNoConfigCommand(t *testing.T) {
	t.Parallel()
	server := startServer(t, "--maxmemory-policy", "allkeys-lru", "--user", "default", "on", "nopass", "~*",
		"+@all", "-config")
	wantFinding(t, newGuard(t, connect(t, server.address), redisinbox.Config{}), "may_evict", true)
}

func TestCheckOfAClusterAsksEveryServer(t *testing.T) {
	t.Parallel()
	good := startServer(t, "--maxmemory-policy", "noeviction")
	bad := startServer(t, "--maxmemory-policy", "allkeys-lru")
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"good": good.address, "bad": bad.address}})
	t.Cleanup(func() { _ = ring.Close() })
	wantFinding(t, newGuard(t, ring, redisinbox.Config{}), "may_evict", true)
}

func TestCheckSaysThatRedisIsDown(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	guard := newGuard(t, connect(t, server.address), redisinbox.Config{OutboxRetention: 721 * time.Hour})
	server.kill()
	findings, err := guard.Check(t.Context())
	wantUnavailable(t, err, false)
	if len(findings) != 1 || findings[0].Code != "keep_too_short" {
		t.Errorf("what needs no Redis is not said: %+v", findings)
	}
}
