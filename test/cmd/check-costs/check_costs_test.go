package main

import (
	"os"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/test/bench/drain"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
)

func TestMain(m *testing.M) { os.Exit(goroutines.Run(m)) }

// TestWhatCostsMoreIsSeen: the tables as they are pass; with what people do to them each figure that suffers is named.
func TestWhatCostsMoreIsSeen(t *testing.T) {
	t.Parallel()
	for change, missed := range map[string][]string{
		"SELECT": nil,
		"CREATE INDEX m ON public.outbox_events (published_at)": {
			"emit_wal", "settle_pages", "settle_wal", "hot", "relay_wal",
		},
		"CREATE INDEX m ON public.outbox_events (state)": {"emit_wal", "settle_pages", "settle_wal", "hot", "relay_wal"},
		"ALTER TABLE public.outbox_events SET (fillfactor = 100)": {
			"settle_pages", "settle_wal", "hot", "relay_wal",
		},
	} {
		t.Run(change, func(t *testing.T) {
			t.Parallel()
			costs, err := drain.QuietCosts(t.Context(), change)
			if err != nil {
				t.Fatal(err)
			}
			want(t, costs, missed...)
		})
	}
}

// want wants these limits to be missed, and no other.
func want(t *testing.T, costs drain.Costs, missed ...string) {
	t.Helper()
	var text strings.Builder
	ok, err := report(&text, costs)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(text.String())
	if ok != (len(missed) == 0) || strings.Count(text.String(), "MISSED") != len(missed) {
		t.Errorf("want %d figures to be missed:\n%s", len(missed), text.String())
	}
	for _, name := range missed {
		if !strings.Contains(text.String(), "MISSED: "+name+" is") {
			t.Errorf("%s was not missed:\n%s", name, text.String())
		}
	}
}

// TestEveryLimitCanBeMissed: by too much, and by nothing: then it was not counted.
func TestEveryLimitCanBeMissed(t *testing.T) {
	t.Parallel()
	var all []string
	for _, l := range limits(drain.Costs{}) {
		all = append(all, l.name)
	}
	want(t, drain.Costs{}, all...)
	const much = 10_000
	want(t, drain.Costs{
		EmitWAL: much, EmitTrips: much, ReadPages: much, SettlePages: much, SettleWAL: much,
		Relay: drain.Counts{WAL: much, HOT: much, Settles: much},
	}, all...)
}
