package outbox

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"
)

func TestNewIDIsVersion7WithTheTime(t *testing.T) {
	t.Parallel()
	before := time.Now().UnixMilli()
	id := NewID()
	after := time.Now().UnixMilli()
	if !id.isVersion7() {
		t.Errorf("%s is not a UUIDv7", id)
	}
	var ms int64
	for _, b := range id[:6] {
		ms = ms<<8 | int64(b)
	}
	// Ids of other tests may have pushed the clock ahead of the wall by a tick each.
	if ms < before || ms > after+1000 {
		t.Errorf("%s carries %d ms, made between %d and %d", id, ms, before, after)
	}
}

func TestNewIDGrowsInOneProcess(t *testing.T) {
	t.Parallel()
	const goroutines, each = 8, 5000
	made := make([][]string, goroutines)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for range each {
				made[g] = append(made[g], NewID().String())
			}
		})
	}
	wg.Wait()
	distinct := map[string]bool{}
	for g, ids := range made {
		if !slices.IsSorted(ids) {
			t.Errorf("goroutine %d saw its ids go backwards", g)
		}
		for _, id := range ids {
			distinct[id] = true
		}
	}
	if len(distinct) != goroutines*each {
		t.Errorf("%d ids, %d distinct", goroutines*each, len(distinct))
	}
}

func TestIDTextRoundTrip(t *testing.T) {
	t.Parallel()
	id := NewID()
	text, err := json.Marshal(id)
	if err != nil {
		t.Fatal(err)
	}
	var back ID
	if err := json.Unmarshal(text, &back); err != nil || back != id {
		t.Errorf("%s became %s: %v", id, back, err)
	}
	parsed, err := ParseID("018f2f6e-1b2c-7d3e-8f40-123456789ABC")
	if err != nil || parsed.String() != "018f2f6e-1b2c-7d3e-8f40-123456789abc" {
		t.Errorf("got %s, %v", parsed, err)
	}
}

func TestParseIDRejects(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty":     "",
		"short":     "018f2f6e-1b2c-7d3e-8f40-123456789ab",
		"long":      "018f2f6e-1b2c-7d3e-8f40-123456789abcd",
		"no hyphen": "018f2f6e1b2c-7d3e-8f40-123456789abc0",
		"not hex":   "018f2f6e-1b2c-7d3e-8f40-123456789abz",
		"braces":    "{18f2f6e-1b2c-7d3e-8f40-123456789ab}",
	} {
		if id, err := ParseID(text); err == nil {
			t.Errorf("%s: taken as %s", name, id)
		}
	}
}
