package inbox

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/outbox"
)

// recorded is a history in which all went well: four events, one that has a copy, one that is hopeless, and a process
// that was killed between the effect and the mark of the last one, which the second process handled again.
func recorded() *history {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	one, two, bad, last := outbox.NewID(), outbox.NewID(), outbox.NewID(), outbox.NewID()
	done := func(ms int, id outbox.ID, outcome consumer.Outcome) line {
		return line{At: at(ms), What: verdict, Event: id, Outcome: outcome, Took: 5 * time.Millisecond, Attempt: 1}
	}
	return &history{
		Form: inRedis, Hold: 100 * time.Millisecond,
		Events: []event{
			{ID: one, Kind: plain, Copies: 1},
			{ID: two, Kind: together, Copies: 2},
			{ID: bad, Kind: broken, Copies: 1},
			{ID: last, Kind: plain, Copies: 1},
		},
		Effects: []effect{
			{one, "a", at(12)}, {two, "a", at(22)}, {last, "a", at(52)}, {last, "b", at(202)},
		},
		Lines: map[string][]line{
			"a": {
				{At: at(11), What: held, Event: one},
				{At: at(14), What: marked, Event: one},
				done(15, one, consumer.Handled),
				{At: at(21), What: held, Event: two},
				{At: at(24), What: marked, Event: two},
				done(25, two, consumer.Handled),
				done(35, bad, consumer.Poisoned),
				{At: at(51), What: held, Event: last},
			},
			"b": {
				done(24, two, consumer.Delayed), done(130, two, consumer.Duplicate),
				{At: at(201), What: held, Event: last},
				{At: at(204), What: marked, Event: last},
				done(205, last, consumer.Handled),
			},
		},
		Endings: map[string]ending{"a": {Killed: true, Point: "mark.before"}, "b": {}},
		Dead:    map[outbox.ID]string{bad: "because"},
	}
}

// figures are those of the verdict that a mistake can change.
func (v *tally) figures() map[string]int {
	return map[string]int{
		"lost": v.Lost, "double": v.Double, "phantom": v.Phantom, "between": v.Between, "lapsed": v.Lapsed,
		"unexplained": v.Unexplained,
		"early":       v.Early, "unguarded": v.Unguarded, "wrongly_dead": v.WronglyDead, "not_dead": v.NotDead,
		"left":       v.Left,
		"concurrent": v.Concurrent,
	}
}

// Every mistake in a history must be found, and called what it is.
func TestTheCheckerFindsMistakes(t *testing.T) {
	t.Parallel()
	right := check(recorded()).figures()
	if want := map[string]int{
		"lost": 0, "double": 1, "phantom": 0, "between": 1, "lapsed": 0, "unexplained": 0, "early": 0, "unguarded": 0,
		"wrongly_dead": 0, "not_dead": 0, "left": 0, "concurrent": 1,
	}; !maps.Equal(right, want) {
		t.Fatalf("of a good history: %v, want %v", right, want)
	}
	for name, test := range map[string]struct {
		spoil func(h *history)
		wrong map[string]int // how the figures differ
	}{
		"an effect is missing": {func(h *history) { h.Effects = h.Effects[1:] }, map[string]int{"lost": 1, "early": 1}},
		"an effect is double": {func(h *history) {
			h.Effects = append(h.Effects, effect{h.Events[0].ID, "b", h.Effects[3].At})
			h.Lines["b"] = append(h.Lines["b"], line{At: h.Effects[0].At, What: held, Event: h.Events[0].ID})
		}, map[string]int{"double": 2, "unexplained": 1}},
		"an effect is of nothing": {func(h *history) {
			h.Effects = append(h.Effects, effect{outbox.NewID(), "b", h.Effects[3].At})
		}, map[string]int{"phantom": 1}},
		"what is hopeless has an effect": {func(h *history) {
			h.Effects = append(h.Effects, effect{h.Events[2].ID, "b", h.Effects[3].At})
		}, map[string]int{"phantom": 1}},
		"a good event is dead": {func(h *history) {
			h.Dead[h.Events[0].ID] = "no reason"
		}, map[string]int{"wrongly_dead": 1}},
		"a hopeless event is not dead": {func(h *history) { clear(h.Dead) }, map[string]int{"not_dead": 1}},
		"nobody was killed": {func(h *history) {
			h.Endings["a"] = ending{}
		}, map[string]int{"between": 0, "unexplained": 1}},
		"it was killed after its mark": {func(h *history) {
			h.Lines["a"] = append(h.Lines["a"], line{At: h.Effects[2].At, What: marked, Event: h.Events[3].ID})
		}, map[string]int{"between": 0, "unexplained": 1}},
		"it was marked before its effect": {func(h *history) {
			h.Lines["a"] = append(h.Lines["a"], line{
				At: h.Effects[2].At.Add(-time.Millisecond), What: marked, Event: h.Events[3].ID,
			})
		}, nil}, // which is no mark of the effect
		"a copy was acknowledged while the first was at work": {func(h *history) {
			h.Lines["b"][0].Outcome, h.Lines["b"][0].At = consumer.Duplicate, h.Effects[1].At.Add(-time.Microsecond)
		}, map[string]int{"early": 1}},
		"nothing was held":    {func(h *history) { h.Lines["a"] = h.Lines["a"][1:] }, map[string]int{"unguarded": 1}},
		"something is left":   {func(h *history) { h.Left = 3 }, map[string]int{"left": 3}},
		"copies did not meet": {func(h *history) { h.Lines["b"] = h.Lines["b"][1:] }, map[string]int{"concurrent": 0}},
		"a hold lapsed": {func(h *history) {
			h.Endings["a"] = ending{}
			h.Lines["a"] = append(h.Lines["a"], line{
				At: h.Effects[2].At.Add(time.Second), What: rejected, Event: h.Events[3].ID,
			})
		}, map[string]int{"between": 0, "lapsed": 1}},
		"a hold did not lapse and was lost": {func(h *history) {
			h.Endings["a"] = ending{}
			h.Lines["a"] = append(h.Lines["a"], line{
				At: h.Effects[2].At.Add(time.Millisecond), What: rejected, Event: h.Events[3].ID,
			})
		}, map[string]int{"between": 0, "unexplained": 1}},
		"Redis forgot": {func(h *history) {
			h.Endings["a"], h.Forgot = ending{}, []time.Time{h.Effects[2].At.Add(time.Minute)}
		}, map[string]int{"between": 4}},
		"it happened once more than it was cut off": {func(h *history) {
			h.Effects = append(h.Effects, effect{h.Events[3].ID, "b", h.Effects[3].At.Add(time.Second)})
		}, map[string]int{"double": 2, "unexplained": 1}},
		"Redis was away, and the same process did it again": {func(h *history) {
			h.Endings["a"], h.Effects[2].Worker = ending{}, "b"
			h.Lines["b"] = append(h.Lines["b"], line{At: h.Effects[2].At, What: held, Event: h.Events[3].ID})
			h.Forgot = []time.Time{h.Effects[2].At.Add(time.Millisecond)}
		}, map[string]int{"between": 3}},
		"the inbox was in PostgreSQL": {func(h *history) {
			h.Form = inPostgres
		}, map[string]int{"between": 0, "unexplained": 1}},
	} {
		h := recorded()
		test.spoil(h)
		want := maps.Clone(right)
		maps.Copy(want, test.wrong)
		if got := check(h).figures(); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// good is a report in which everything went well and enough was tested.
func good() *Report {
	plan := Short()
	r := &Report{plan: plan, Tallies: map[string]*tally{}, tests: allPass()}
	for _, scenario := range plan.Scenarios {
		for _, consumer := range []string{"postgres", "redis", "marked", "guarded"} {
			r.Tallies[scenario+"-"+consumer] = &tally{
				Events: plan.Events, Copies: plan.Events, Concurrent: plan.LeastMeeting, Skipped: 1, Delayed: 1, Dead: 5, Stops: 1,
				Kills: map[string]int{},
			}
		}
	}
	for _, point := range slices.Concat([]string{""}, postgresPoints, redisPoints) {
		r.Tallies["killing-postgres"].Kills[point], r.Tallies["killing-redis"].Kills[point] = plan.LeastKills, plan.LeastKills
	}
	for _, name := range []string{"killing-redis", "standstill-redis", "forgetting-redis"} {
		r.Tallies[name].Double, r.Tallies[name].Between = 1, 1
	}
	for _, name := range []string{"slow-redis", "slow-postgres"} {
		r.Tallies[name].Concurrent = 0
	}
	r.Tallies["onecall-marked"].Kills["check.after"], r.Tallies["onecall-marked"].Lost = plan.Lost, plan.Lost
	r.Tallies["onecall-guarded"].Kills["hold.after"] = plan.Lost
	return r
}

// Whatever is missed, or not tried often enough, must fail the proof.
func TestTheProofFails(t *testing.T) {
	t.Parallel()
	if r := good(); !r.OK() {
		_, problems := r.shown()
		t.Fatalf("a good report is refused: %q", problems)
	}
	of := func(name string, spoil func(v *tally)) func(r *Report) {
		return func(r *Report) { spoil(r.Tallies[name]) }
	}
	for name, spoil := range map[string]func(r *Report){
		"PostgreSQL lost":          of("killing-postgres", func(v *tally) { v.Lost = 1 }),
		"PostgreSQL double":        of("killing-postgres", func(v *tally) { v.Double = 1 }),
		"Redis lost":               of("killing-redis", func(v *tally) { v.Lost = 1 }),
		"Redis double":             of("killing-redis", func(v *tally) { v.Double = 2 }),
		"unexplained":              of("killing-redis", func(v *tally) { v.Unexplained = 1 }),
		"unguarded":                of("forgetting-redis", func(v *tally) { v.Unguarded = 1 }),
		"phantom":                  of("standstill-postgres", func(v *tally) { v.Phantom = 1 }),
		"early":                    of("killing-redis", func(v *tally) { v.Early = 1 }),
		"left":                     of("killing-postgres", func(v *tally) { v.Left = 1 }),
		"wrongly dead":             of("killing-postgres", func(v *tally) { v.WronglyDead = 1 }),
		"not dead":                 of("hopeless-redis", func(v *tally) { v.NotDead = 1 }),
		"the window not hit":       of("killing-redis", func(v *tally) { v.Double = 0 }),
		"a point not died at":      of("killing-redis", func(v *tally) { v.Kills["mark.after"] = 0 }),
		"no random kill":           of("killing-postgres", func(v *tally) { v.Kills[""] = 0 }),
		"too few events":           of("killing-redis", func(v *tally) { v.Events-- }),
		"too few copies":           of("killing-redis", func(v *tally) { v.Copies = v.Events/10 - 1 }),
		"copies did not meet":      of("killing-postgres", func(v *tally) { v.Concurrent = 0 }),
		"the one call lost less":   of("onecall-marked", func(v *tally) { v.Lost-- }),
		"the one call lost more":   of("onecall-marked", func(v *tally) { v.Lost++ }),
		"the guard lost":           of("onecall-guarded", func(v *tally) { v.Lost = 1 }),
		"the guard was not hit":    of("onecall-guarded", func(v *tally) { clear(v.Kills) }),
		"nobody stood still":       of("standstill-redis", func(v *tally) { v.Stops = 0 }),
		"Redis was not away":       of("forgetting-redis", func(v *tally) { v.Delayed = 0 }),
		"Redis forgot nothing":     of("forgetting-redis", func(v *tally) { v.Double = 0 }),
		"a slow one came again":    of("slow-redis", func(v *tally) { v.Again = 1 }),
		"slow ones met":            of("slow-postgres", func(v *tally) { v.Concurrent = 1 }),
		"a dead letter is missing": of("hopeless-postgres", func(v *tally) { v.Dead = 4 }),
		"a scene is missing":       func(r *Report) { delete(r.Tallies, "slow-redis") },
		"a test failed":            func(r *Report) { r.tests.Outcomes["inbox.TestFaultI16OtherTransactions"] = "fail" },
		"a test was skipped":       func(r *Report) { r.tests.Outcomes["redisinbox.TestShortMemory"] = "skip" },
		"a test did not run":       func(r *Report) { delete(r.tests.Outcomes, "redisinbox.TestKeysAreInjective") },
	} {
		r := good()
		spoil(r)
		if r.OK() {
			t.Errorf("%s: it passes", name)
		}
	}
}

func TestAllFaultsAreListed(t *testing.T) {
	t.Parallel()
	for i, f := range faults {
		if f.id != fmt.Sprintf("I%d", i+1) || len(f.tests)+len(f.scenarios) == 0 {
			t.Errorf("the fault at place %d is %+v", i+1, f)
		}
	}
	if len(faults) != 16 {
		t.Errorf("%d faults, want 16", len(faults))
	}
}

// What is dealt has the copies that it says, in an order in which some come at once and some late.
func TestDeal(t *testing.T) {
	t.Parallel()
	events, order := shuffle(rand.New(rand.NewPCG(1, 2)), 2000, map[kind]int{fails: 1, broken: 5, poison: 2})
	kinds, places := map[kind]int{}, map[int][]int{}
	for place, i := range order {
		places[i] = append(places[i], place)
	}
	copied := 0
	for i, e := range events {
		kinds[e.Kind]++
		if len(places[i]) != e.Copies {
			t.Fatalf("event %d has %d copies, and was published %d times", i, e.Copies, len(places[i]))
		}
		if e.Copies > 1 {
			copied++
		}
		if e.Kind == together && places[i][e.Copies-1]-places[i][0] != e.Copies-1 {
			t.Errorf("the copies of event %d are not side by side", i)
		}
	}
	if copied != 200 || kinds[together] != 150 || kinds[broken] != 5 || kinds[poison] != 2 || kinds[fails] < 50 {
		t.Errorf("%d events have copies; kinds: %v", copied, kinds)
	}
}
