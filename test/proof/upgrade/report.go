package upgrade

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/figures"
	"github.com/posthaste-dev/posthaste/relay"
)

// Leg is what a side published in a part of the run, and how much that must be.
type Leg struct {
	Name, Side   string
	Events, Want int
}

// Report is what was found.
type Report struct {
	plan    Plan
	Legs    []Leg
	Verdict *check.Verdict
	// Rejection is what was wrong with how a new publisher refused a schema that is too old; empty: nothing.
	Rejection string
	// Migration is how long it took, under load, and Version what the schema is at now.
	Migration time.Duration
	Version   int
	Kills     int
	Drained   bool
	// Dead and Charged count events, GivenUp messages that consumers gave up: there must be none.
	Dead, Charged, GivenUp int
	// Emitted are events of producers of each side on the new schema, Handled what their consumers did there.
	OldEmitted, NewEmitted, OldHandled, NewHandled int
	Seconds                                        float64

	other []string // what else was broken
}

// NewReport is an empty report.
func NewReport(plan Plan) *Report { return &Report{plan: plan} }

func (r *Report) problemf(format string, args ...any) {
	r.other = append(r.other, fmt.Sprintf(format, args...))
}

// legs are those that there must be: whose side publishes when.
func (p Plan) legs() []Leg {
	list := []Leg{
		{Name: "old_on_old", Side: "old"},
		{Name: "old_on_new", Side: "old"},
		{Name: "beside", Side: "old"},
		{Name: "beside", Side: "new"},
		{Name: "after_kills", Side: "old"},
		{Name: "after_kills", Side: "new"},
		{Name: "new_alone", Side: "new"},
		{Name: "taken_back", Side: "old"},
	}
	if p.worksOnOld() {
		list = append([]Leg{{Name: "new_on_old", Side: "new"}}, list...)
	}
	for i := range list {
		list[i].Want = p.Each
	}
	return list
}

// worksOnOld: the new relay takes the schema at which the run begins.
func (p Plan) worksOnOld() bool { return p.start(p.Outbox) >= relay.SchemaVersion }

// published is how much a side published in a leg.
func (r *Report) published(leg Leg) int {
	for _, l := range r.Legs {
		if l.Name == leg.Name && l.Side == leg.Side {
			return l.Events
		}
	}
	return 0
}

// Problems are what was broken and what was tested too little, a sentence each.
func (r *Report) Problems() []string {
	list := r.other
	is := func(broken bool, format string, args ...any) {
		if broken {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	for _, problem := range r.Verdict.Problems() {
		is(true, "%s", problem)
	}
	for _, sentence := range r.Verdict.TooLittle {
		is(true, "%s", sentence)
	}
	is(r.Rejection != "", "%s", r.Rejection)
	for _, leg := range r.plan.legs() {
		found := r.published(leg)
		is(found < leg.Want, "the %s relays published %d events in the leg %s, at least %d must be", leg.Side, found,
			strings.ReplaceAll(leg.Name, "_", " "), leg.Want)
	}
	is(r.Version != r.plan.Outbox.New, "the schema is at version %d, and not at %d", r.Version, r.plan.Outbox.New)
	is(r.Dead > 0, "%d events are dead", r.Dead)
	is(r.Charged > 0, "%d events were charged, and none was at fault", r.Charged)
	is(r.GivenUp > 0, "consumers gave up %d messages", r.GivenUp)
	is(!r.Drained, "it did not drain: nothing moved for %s, or nobody was left", r.plan.Patience)
	is(r.Kills < 2*r.plan.Kills, "too little was tested: %d relays were killed", r.Kills)
	for _, n := range []struct {
		what  string
		count int
	}{
		{"events of the old producer", r.OldEmitted},
		{"events of the new producer", r.NewEmitted},
		{"effects of the old consumer", r.OldHandled},
		{"effects of the new consumer", r.NewHandled},
	} {
		is(n.count < r.plan.Each, "too little was tested: there are %d %s on the new schema, at least %d must be", n.count,
			n.what, r.plan.Each)
	}
	return list
}

// Print writes the problems and the last line. It tells whether there were none.
func (r *Report) Print(to io.Writer) (ok bool, err error) {
	problems := r.Problems()
	for _, problem := range problems {
		_, _ = fmt.Fprintln(to, "BROKEN:", problem) // the last line tells
	}
	line := figures.New("proof-upgrade")
	line.Addf("old", "%s", r.plan.Old.Short())
	line.Addf("why", "%s", r.plan.Old.Why)
	line.Addf("schema_old", "%d", r.plan.start(r.plan.Outbox))
	line.Addf("schema_new", "%d", r.Version)
	line.Addf("migrations_kept", "%t", r.plan.Outbox.Kept() && r.plan.Inbox.Kept())
	line.Addf("migration_ms", "%d", r.Migration.Milliseconds())
	line.Addf("events", "%d", r.Verdict.Count(check.Committed))
	for _, leg := range r.plan.legs() {
		line.Addf(leg.Name+"_"+leg.Side, "%d", r.published(leg))
	}
	line.Addf("old_emitted_on_new", "%d", r.OldEmitted)
	line.Addf("new_emitted_on_new", "%d", r.NewEmitted)
	line.Addf("old_handled_on_new", "%d", r.OldHandled)
	line.Addf("new_handled_on_new", "%d", r.NewHandled)
	line.Addf("kills", "%d", r.Kills)
	line.Addf("duplicates", "%d", r.Verdict.Count(check.Duplicates))
	for _, zero := range check.Zeros() {
		line.Addf(zero.Name, "%d", r.Verdict.Count(zero.Of))
	}
	line.Addf("double_effects", "%d", r.Verdict.Count(check.DoubleEffects))
	line.Addf("effects_missing", "%d", r.Verdict.Count(check.EffectsMissing))
	line.Addf("dead", "%d", r.Dead)
	line.Addf("charged", "%d", r.Charged)
	line.Addf("new_works_on_old", "%t", r.plan.worksOnOld())
	line.Addf("refused_clearly", "%t", r.Rejection == "")
	line.Addf("seconds", "%.1f", r.Seconds)
	line.Addf("ok", "%t", len(problems) == 0)
	if _, err := fmt.Fprintln(to, line); err != nil {
		return false, fmt.Errorf("upgrade: print: %w", err)
	}
	return len(problems) == 0, nil
}
