package main

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/internal/figures"
	"github.com/posthaste-dev/posthaste/test/bench/drain"
	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

func TestFlags(t *testing.T) {
	t.Parallel()
	form := func(args ...string) options {
		t.Helper()
		o, err := parse(args)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	short, full, long := form("-short"), form(), form("-long")
	if long.events < 200_000 || long.pairs < 6 || long.planned() <= full.planned() {
		t.Errorf("the long form has %d events, %d pairs, %s of fleets; the full one %s", long.events, long.pairs,
			long.planned(), full.planned())
	}
	// Less than this and a kill in the middle is none, and nobody is behind anybody.
	if short.events < 5_000 || short.pairs < 1 || short.fleetEvents < 6_000 || short.planned() >= full.planned() {
		t.Errorf("the short form has %d events, %d pairs, %d events of fleets", short.events, short.pairs, short.fleetEvents)
	}
	if _, err := parse([]string{"-only", "nothing"}); err == nil {
		t.Error("a part that does not exist was taken")
	}
}

// Every size of fleet needs the fleet of one beside it, and one of them loses a relay.
func TestSettings(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"-short"}, {"-long"}} {
		o, err := parse(args)
		if err != nil {
			t.Fatal(err)
		}
		kills, kinds := 0, map[string]bool{}
		for _, s := range o.settings() {
			kinds[s.String()] = true
			if s.kill {
				kills++
			} else if !slices.Contains(s.relays, 1) || !slices.Contains(s.relays, 16) || s.lease != defaultLease {
				t.Errorf("%s: %+v", s, s)
			}
		}
		if kills != 1 || len(kinds) != 6 {
			t.Errorf("%v, %d with a kill", kinds, kills)
		}
	}
}

func TestHalvesMakePalindromes(t *testing.T) {
	t.Parallel()
	var order []int
	for pair := range 4 {
		order = append(order, half(3, pair)...)
	}
	if want := []int{0, 1, 2, 2, 1, 0, 1, 2, 0, 0, 2, 1}; !slices.Equal(order, want) {
		t.Errorf("%v, want %v", order, want)
	}
}

// found is a run in which the relay takes half as long again as the bare loop, and is otherwise as given.
func found(verdict drain.Verdict, unowned time.Duration) *findings {
	f := &findings{figures: figures.New("bench-drain")}
	f.options.pairs = 2
	for pair := range 2 {
		for _, subject := range f.options.subjects() {
			turn := drain.Turn{Sample: bench.Sample{
				Block: bench.Block{Subject: subject, Round: pair}, Transactions: 1000, Elapsed: time.Second,
				ServerCPU: time.Second, ClientCPU: time.Second,
			}}
			if strings.HasPrefix(subject, "relay") {
				turn.Elapsed = 3 * time.Second / 2
			}
			f.single = append(f.single, turn)
		}
	}
	fleet := fleetTurns{setting: setting{relays: []int{1, 16}, lease: time.Second}}
	for _, subject := range []string{"1", "16"} {
		turn := drain.FleetTurn{Verdict: verdict, Unowned: unowned, Shares: []int{1000}}
		turn.Sample = bench.Sample{
			Block: bench.Block{Subject: subject}, Transactions: 1000, Elapsed: time.Second, ServerCPU: time.Second,
		}
		fleet.turns = append(fleet.turns, turn)
	}
	f.fleets = []fleetTurns{fleet}
	return f
}

func TestReportFailsOnlyOnMusts(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		verdict drain.Verdict
		unowned time.Duration
		fails   bool
		says    string
	}{
		"slow":         {drain.Verdict{Events: 1000}, 0, false, "relay_bare_typed=0.667"},
		"duplicates":   {drain.Verdict{Events: 1000, Duplicates: 3}, 0, false, "duplicates=6"},
		"lost":         {drain.Verdict{Events: 1000, Lost: 1}, 0, true, "lost=2"},
		"out of order": {drain.Verdict{Events: 1000, Disorder: 1}, 0, true, "order=2"},
		"strange":      {drain.Verdict{Events: 1000, Strange: 1}, 0, true, "ok=false"},
		"unowned":      {drain.Verdict{Events: 1000}, 2 * time.Second, true, "unowned_max_ms=2000"},
	} {
		var out bytes.Buffer
		f := found(test.verdict, test.unowned)
		err := f.print(&out)
		if errors.Is(err, errMust) != test.fails || (err != nil) != test.fails {
			t.Errorf("%s: %v", name, err)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if last := lines[len(lines)-1]; !strings.HasPrefix(last, "bench-drain aa=") || !strings.Contains(last, test.says) {
			t.Errorf("%s: the last line is %s, want it to have %s", name, last, test.says)
		}
	}
}
