package main

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

func draw(t *testing.T) (*env, *bench.Client) {
	t.Helper()
	w := &env{}
	w.draw(1.1)
	return w, &bench.Client{Rand: rand.New(rand.NewPCG(1, 2))}
}

// The comparison is fair only if both sides store the same JSON.
func TestBothSidesStoreTheSamePayload(t *testing.T) {
	t.Parallel()
	w, client := draw(t)
	o := w.order(client)
	ours, err := outbox.Statement("", o.event())
	if err != nil {
		t.Fatal(err)
	}
	bareText, err := o.payload()
	if err != nil {
		t.Fatal(err)
	}
	stored := ours.Args[6].(string)
	if len(stored) != len(bareText) {
		t.Errorf("%d bytes by emit, %d bare:\n%s\n%s", len(stored), len(bareText), stored, bareText)
	}
	if len(stored) < 450 || len(stored) > 550 {
		t.Errorf("%d bytes, and the documentation says about 500", len(stored))
	}
	emitted, err := outbox.DecodeEnvelope([]byte(stored))
	if err != nil {
		t.Fatal(err)
	}
	inserted, err := outbox.DecodeEnvelope([]byte(bareText))
	if err != nil {
		t.Fatal(err)
	}
	if string(emitted.Data) != string(inserted.Data) || !json.Valid(emitted.Data) {
		t.Errorf("%s by emit, %s bare", emitted.Data, inserted.Data)
	}
}

func TestDrawsRepeatAndAreSkewed(t *testing.T) {
	t.Parallel()
	first, _ := draw(t)
	second, _ := draw(t)
	if !slices.Equal(first.accountIDs, second.accountIDs) || !slices.Equal(first.draws, second.draws) {
		t.Error("two runs do not work on the same accounts")
	}
	uses := map[int32]int{}
	for _, account := range first.draws {
		uses[account]++
	}
	if most := uses[0]; most < len(first.draws)/20 || len(uses) < accounts/4 {
		t.Errorf("the most used account has %d of %d draws, and %d accounts are used", most, len(first.draws), len(uses))
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	full, err := parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	if planned := full.planned(); planned < 40*time.Second || planned > 90*time.Second {
		t.Errorf("the full form plans %s of turns", planned)
	}
	short, err := parse([]string{"-short"})
	if err != nil {
		t.Fatal(err)
	}
	if planned := short.planned(); planned < 10*time.Second || planned > 20*time.Second || short.walRuns != full.walRuns ||
		len(short.plan()) != len(full.plan()) {
		t.Errorf("the short form plans %s of turns, and counts WAL over %d transactions", planned, short.walRuns)
	}
	long, err := parse([]string{"-long"})
	if err != nil {
		t.Fatal(err)
	}
	if planned := long.planned(); planned < 6*time.Minute || planned > 10*time.Minute || !long.costs {
		t.Errorf("the long form plans %s of turns", planned)
	}
	timed, err := parse([]string{"-duration", "5m", "-clients", "2,8"})
	if err != nil {
		t.Fatal(err)
	}
	if planned := timed.planned(); planned < 4*time.Minute || planned > 6*time.Minute ||
		!slices.Equal(timed.clients, []int{2, 8}) {
		t.Errorf("%s of turns for 5m, clients %v", planned, timed.clients)
	}
	if _, err := parse([]string{"-clients", "8,none"}); err == nil {
		t.Error("a number of clients that is none was taken")
	}
}
