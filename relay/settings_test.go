package relay

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
)

func complete(t testing.TB) Config {
	t.Helper()
	registry, err := outbox.NewRegistry(outbox.Define[struct{}](outbox.Contract{
		Type: "order_placed", Aggregate: "order", Topic: "orders",
	}))
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		Database: "postgres://127.0.0.1/x", Registry: registry,
		Publisher: publish.PublisherFunc(func(context.Context, *publish.Message) error { return nil }),
	}
}

// RL-12: without settings the relay has these.
func TestTheDefaults(t *testing.T) {
	t.Parallel()
	r, err := New(complete(t))
	if err != nil {
		t.Fatal(err)
	}
	want := Settings{
		Batch: 500, MaxInFlight: r.config.MaxInFlight, MaxBytes: 64 << 20, Concurrency: 256,
		Poll: 500 * time.Millisecond, Lease: 30 * time.Second, Deadline: 10 * time.Second, Drain: 20 * time.Second,
		MaxAttempts: 10, BaseDelay: time.Second, MaxDelay: 300 * time.Second, UnknownTypeMaxAge: 24 * time.Hour,
		FailoverWindow: 10 * time.Minute,
	}
	if r.config.Settings != want {
		t.Errorf("the settings are %+v, want %+v", r.config.Settings, want)
	}
	if r.config.MaxInFlight < 4*r.config.Batch {
		t.Errorf("MaxInFlight is %d: reading would wait for settling", r.config.MaxInFlight)
	}
	if r.config.Schema != "public" || r.config.ListenDatabase != r.config.Database || r.config.Name == "" ||
		r.config.Logger == nil {
		t.Errorf("the configuration is %+v", r.config)
	}
	if zero := r.Stats(); zero != (Stats{}) {
		t.Errorf("before it runs it has done %+v", zero)
	}
}

// RL-12: every setting that cannot work is invalid, in words that name it and its limit.
func TestEverySettingThatCannotWorkIsInvalid(t *testing.T) {
	t.Parallel()
	for says, change := range map[string]func(*Config){
		"Batch: -1, must be between 1 and 10000":              func(c *Config) { c.Batch = -1 },
		"Batch: 10001, must be between 1 and 10000":           func(c *Config) { c.Batch = 10_001 },
		"MaxInFlight: 499, must not be less than Batch (500)": func(c *Config) { c.MaxInFlight = 499 },
		"MaxBytes: 1048575, must be at least 1 MiB":           func(c *Config) { c.MaxBytes = 1<<20 - 1 },
		"Concurrency: -1, must be at least 1":                 func(c *Config) { c.Concurrency = -1 },
		"Lease: 999ms, must be at least 1 s": func(c *Config) {
			c.Lease, c.Poll = 999*time.Millisecond, time.Millisecond
		},
		"Poll: 10.000000001s, must be at least 1 ms and at most a third of the lease (30s)": func(c *Config) {
			c.Poll = 10*time.Second + 1
		},
		"Poll: -1s, must be at least 1 ms": func(c *Config) { c.Poll = -time.Second },
		"Deadline: 30s, must be at least 10 ms and at most a third of the lease (30s)": func(c *Config) {
			c.Deadline = 30 * time.Second
		},
		"Deadline: 10.001s, must be at least 10 ms and at most a third of the lease (30s)": func(c *Config) {
			c.Deadline = 10_001 * time.Millisecond
		},
		"Deadline: 9ms, must be at least 10 ms": func(c *Config) { c.Deadline = 9 * time.Millisecond },
		"Drain: -1ns, must not be negative":     func(c *Config) { c.Drain = -1 },
		"MaxAttempts: -1, must be at least 1":   func(c *Config) { c.MaxAttempts = -1 },
		"BaseDelay and MaxDelay: 2s and 1s, must not be negative and in this order": func(c *Config) {
			c.BaseDelay, c.MaxDelay = 2*time.Second, time.Second
		},
		"BaseDelay and MaxDelay: -1s and 5m0s, must not be negative and in this order": func(c *Config) {
			c.BaseDelay = -time.Second
		},
		"the Database is missing: give the URL of the outbox's database": func(c *Config) { c.Database = "" },
		"the Registry is missing: make one with outbox.NewRegistry":      func(c *Config) { c.Registry = nil },
		"the Publisher is missing: give a broker's publisher, or a publish.PublisherFunc": func(c *Config) {
			c.Publisher = nil
		},
	} {
		config := complete(t)
		change(&config)
		if _, err := New(config); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v", says, err)
		}
	}
}

// What is just right is taken.
func TestSettingsAtTheirLimits(t *testing.T) {
	t.Parallel()
	for _, settings := range []Settings{
		{
			Batch: 1, MaxInFlight: 1, MaxBytes: 1 << 20, Concurrency: 1, Lease: time.Second, Poll: time.Second / 3,
			Deadline: time.Second / 3, MaxAttempts: 1,
		},
		{
			Batch: 10_000, Lease: time.Hour, Poll: 20 * time.Minute, Deadline: 20 * time.Minute, BaseDelay: time.Second,
			MaxDelay: time.Second,
		},
		{MaxAttempts: math.MaxInt32, UnknownTypeMaxAge: -1},
	} {
		config := complete(t)
		config.Settings = settings
		if _, err := New(config); err != nil {
			t.Errorf("%+v: %v", settings, err)
		}
	}
}

// All that is wrong is said at once.
func TestAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := New(Config{Settings: Settings{Batch: -1, Lease: time.Millisecond, MaxAttempts: -1}})
	for _, problem := range []string{"Batch:", "Lease:", "MaxAttempts:", "Database", "Registry", "Publisher"} {
		if err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%s is not in: %v", problem, err)
		}
	}
}

// A URL that cannot be read may hold a password, and is not quoted.
func TestABadURLIsNotQuoted(t *testing.T) {
	t.Parallel()
	config := complete(t)
	config.Database = "postgres://u:s3cr3t@127.0.0.1:port/x"
	r, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := r.Run(ctx); err == nil || strings.Contains(err.Error(), "s3cr3t") ||
		!strings.Contains(err.Error(), "Database") {
		t.Errorf("Run returned %v", err)
	}
}
