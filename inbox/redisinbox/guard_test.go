package redisinbox

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/posthaste-dev/posthaste/outbox"
)

// newClient makes a client that is never used.
func newClient(t *testing.T, options *redis.Options) *redis.Client {
	t.Helper()
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func newGuard(t *testing.T, config Config) *Guard {
	t.Helper()
	guard, err := New(newClient(t, &redis.Options{}), config)
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	config := newGuard(t, Config{}).config
	if config.Prefix != "outbox" || config.Hold != 30*time.Second || config.Keep != 720*time.Hour || config.FailOpen ||
		config.Logger == nil {
		t.Errorf("got %+v", config)
	}
}

func TestNewSaysEverythingThatIsWrong(t *testing.T) {
	t.Parallel()
	_, err := New(nil, Config{Prefix: "a:b", Hold: time.Millisecond, Keep: -time.Hour})
	if err == nil {
		t.Fatal("it was taken")
	}
	for _, problem := range []string{"client", "Prefix", "Hold", "Keep"} {
		if !strings.Contains(err.Error(), problem) {
			t.Errorf("nothing about %s in: %v", problem, err)
		}
	}
}

func TestConsumersAndIDs(t *testing.T) {
	t.Parallel()
	guard := newGuard(t, Config{})
	for consumer, want := range map[string]bool{
		"a": true, "order-mailer.v2_x": true, strings.Repeat("a", 64): true,
		"": false, strings.Repeat("a", 65): false, "A": false, "a:b": false, "a b": false, "ä": false, "a\n": false,
		"{a}": false, "*": false,
	} {
		if _, err := guard.key(consumer, outbox.NewID()); errors.Is(err, ErrRefused) == want || (err == nil) != want {
			t.Errorf("%q: %v", consumer, err)
		}
	}
	if _, err := guard.key("a", outbox.ID{}); !errors.Is(err, ErrRefused) {
		t.Error("an event without an id has a key")
	}
}

// No two events share a key, whatever their parts look like (fault I10).
func TestKeysAreInjective(t *testing.T) {
	t.Parallel()
	type parts struct{ prefix, consumer, tenant, id string }
	pieces := []string{"a", "b", "c", ".", "-", "_", "evt", "processed", "a.b"}
	tenants := []string{
		"", "a", "b", ":", "%", "a:b", "b:a", "a%3Ab", "%3A", "+", " ", "a b", "{a}", "ä", "\xff", "A", "evt:processed", "a:",
		":a", "::",
	}
	ids := []outbox.ID{{1}, {2}, outbox.NewID()}
	random := rand.New(rand.NewPCG(1, 2))
	pick := func() string { return pieces[random.IntN(len(pieces))] + pieces[random.IntN(len(pieces))] }
	seen := map[string]parts{}
	for range 50_000 {
		p := parts{
			prefix: pick(), consumer: pick(), tenant: tenants[random.IntN(len(tenants))] + tenants[random.IntN(len(tenants))],
		}
		id := ids[random.IntN(len(ids))]
		p.id = id.String()
		guard := &Guard{config: Config{Prefix: p.prefix}}
		key, err := guard.ForTenant(p.tenant).key(p.consumer, id)
		if err != nil {
			t.Fatal(err)
		}
		if other, met := seen[key]; met && other != p {
			t.Fatalf("%q is the key of %+v and of %+v", key, p, other)
		}
		seen[key] = p
	}
	if len(seen) < 10_000 {
		t.Errorf("%d keys: too few were tested", len(seen))
	}
}

func TestForTenantReplacesTheTenant(t *testing.T) {
	t.Parallel()
	guard, id := newGuard(t, Config{}), outbox.NewID()
	want, err := guard.ForTenant("b").key("c", id)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := guard.ForTenant("a").ForTenant("b").key("c", id); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	plain, _ := guard.key("c", id)
	if got, _ := guard.ForTenant("a").ForTenant("").key("c", id); got != plain {
		t.Errorf("got %s, want %s", got, plain)
	}
}

// A hold in its last millisecond was once taken for one without end, and the copy was sent away for a whole hold.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	guard := newGuard(t, Config{})
	for left, want := range map[time.Duration]time.Duration{
		-time.Millisecond: 30 * time.Second, 0: time.Millisecond, time.Millisecond: time.Millisecond,
		7 * time.Second: 7 * time.Second,
	} {
		if got := guard.retryAfter(left); got != want {
			t.Errorf("%s are left: got %s, want %s", left, got, want)
		}
	}
}
