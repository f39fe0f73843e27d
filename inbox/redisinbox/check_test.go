package redisinbox

import (
	"crypto/tls"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func codesOf(findings []Finding) (codes []string) {
	for _, finding := range findings {
		codes = append(codes, finding.Code)
	}
	return codes
}

// Keep must outlive the longer of the two retentions and the replay that follows (fault I9).
func TestKeepIsComparedWithTheWindows(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, test := range []struct {
		keep, broker, outbox, replay time.Duration
		want                         string
	}{
		{0, 0, 0, 0, "no_windows"},
		{0, 7 * day, 30 * day, 0, ""},
		{0, 31 * day, 0, 0, "keep_too_short"},
		{0, 0, 31 * day, 0, "keep_too_short"},
		{0, 7 * day, 30 * day, time.Second, "keep_too_short"},
		{0, 15 * day, 15 * day, 15 * day, ""}, // the longer, not the sum
		{7 * day, 7 * day, 0, 0, ""},
		{7 * day, 7*day + time.Nanosecond, 0, 0, "keep_too_short"},
		{0, -1, 0, 0, "keep_too_short"},
		{0, 0, -1, 0, "keep_too_short"},
		{0, 0, 0, -1, "keep_too_short"},
	} {
		guard := newGuard(t, Config{
			Keep: test.keep, BrokerRetention: test.broker, OutboxRetention: test.outbox, ReplayHorizon: test.replay,
		})
		findings := guard.checkKeep()
		if got := strings.Join(codesOf(findings), " "); got != test.want {
			t.Errorf("%+v: got %q", test, got)
		}
		for _, finding := range findings {
			if (finding.Level == slog.LevelWarn) != (finding.Code == "keep_too_short") {
				t.Errorf("%+v", finding)
			}
		}
	}
}

func TestTheClientIsLookedAt(t *testing.T) {
	t.Parallel()
	verified, unverified := &tls.Config{MinVersion: tls.VersionTLS12}, &tls.Config{InsecureSkipVerify: true}
	for _, test := range []struct {
		options redis.Options
		want    []string
	}{
		{redis.Options{Addr: "redis.example.com:6379"}, []string{"not_verified", "deadlines_ignored"}},
		{redis.Options{Addr: "10.0.0.1:6379", ContextTimeoutEnabled: true}, []string{"not_verified"}},
		{redis.Options{Addr: "10.0.0.1:6379", ContextTimeoutEnabled: true, TLSConfig: unverified}, []string{"not_verified"}},
		{redis.Options{Addr: "10.0.0.1:6379", ContextTimeoutEnabled: true, TLSConfig: verified}, nil},
		{redis.Options{Addr: "127.0.0.1:6379", ContextTimeoutEnabled: true}, nil},
		{redis.Options{Addr: "LocalHost:6379", ContextTimeoutEnabled: true}, nil},
		{redis.Options{Addr: "[::1]:6379", ContextTimeoutEnabled: true}, nil},
		{redis.Options{Addr: "localhost.example.com:6379", ContextTimeoutEnabled: true}, []string{"not_verified"}},
		{redis.Options{Addr: "/run/redis.sock", Network: "unix", ContextTimeoutEnabled: true}, nil},
	} {
		test.options.Password = "correct-horse"
		guard := newGuard(t, Config{})
		guard.client = newClient(t, &test.options)
		findings := guard.checkClient()
		if got := codesOf(findings); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.options.Addr, got, test.want)
		}
		for _, finding := range findings {
			if strings.Contains(finding.Text, test.options.Password) {
				t.Error("the password is in " + finding.Text)
			}
		}
	}
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1", "redis.example.com:1"}})
	defer cluster.Close()
	guard := newGuard(t, Config{})
	guard.client = cluster
	if got := codesOf(guard.checkClient()); !slices.Equal(got, []string{"not_verified", "deadlines_ignored"}) {
		t.Errorf("a cluster: got %q", got)
	}
}

func TestWhatAServerSaysOfItself(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"# Memory\r\nmaxmemory_policy:noeviction\r\n# Persistence\r\naof_enabled:1\r\n": "",

		"maxmemory_policy:allkeys-lru\r\naof_enabled:1\r\n": "may_evict",
		"maxmemory_policy:volatile-ttl\naof_enabled:0\n":    "may_evict no_persistence",

		"maxmemory_policy:noeviction\r\n": "", // a rented one that does not tell of files
		"used_memory:1\r\n":               "server_unknown",

		"": "server_unknown",
	} {
		if got := strings.Join(codesOf(checkServer(parseInfo(text))), " "); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
