package modeltest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// Proof is how much to compare.
type Proof struct {
	Sequences int
	Actions   int // of each sequence
	Seed      uint64
	// mutate puts a fault into the model before a sequence, to see that it is found.
	mutate func(*model)
}

// Report is what was compared.
type Report struct {
	Sequences, Actions int
	// Planned is how many actions there should be; what is to be met grows with it.
	Planned int
	// Kinds counts the actions by kind, Saw what came of them.
	Kinds, Saw map[string]int
	// Changes counts how events went from one state to another, as "settle 0>6".
	Changes map[string]int
	// Mismatch tells the first difference, with the actions that led to it; empty if there is none.
	Mismatch string
}

// Run runs sequences until one side answers or holds something else than the other. Dice may be unkind: it goes on, up
// to three times as long, until enough was met.
func (p Proof) Run(ctx context.Context, db *Database) (*Report, error) {
	report := &Report{
		Planned: p.Sequences * p.Actions, Kinds: map[string]int{}, Saw: map[string]int{}, Changes: map[string]int{},
	}
	laneOf, err := db.aggregates(ctx)
	if err != nil {
		return report, err
	}
	for i := 0; i < p.Sequences || i < 3*p.Sequences && len(report.TooLittle()) > 0; i++ {
		seed := p.Seed + uint64(i)
		if err := p.sequence(ctx, db, seed, laneOf, report); err != nil || report.Mismatch != "" {
			return report, err
		}
		report.Sequences++
	}
	return report, nil
}

func (p Proof) sequence(ctx context.Context, db *Database, seed uint64, laneOf map[core.Aggregate]int16,
	report *Report,
) error {
	if err := db.clean(ctx); err != nil {
		return fmt.Errorf("clean: %w", err)
	}
	model, postgres := newModel(func(a core.Aggregate) int16 { return laneOf[a] }), newPostgres(db)
	if p.mutate != nil {
		p.mutate(model)
	}
	script := newScript(seed, model, laneOf)
	var done []*step
	for range p.Actions {
		step := script.next()
		done = append(done, step)
		model.steps += time.Microsecond
		difference, err := step.compare(ctx, model, postgres)
		if err != nil {
			return err
		}
		report.Actions++
		report.Kinds[step.kind]++
		if difference != "" {
			report.Mismatch = describe(seed, done, difference)
			return nil
		}
	}
	for what, n := range script.saw {
		report.Saw[what] += n
	}
	for _, change := range model.mem.Changes() {
		by, _, _ := strings.Cut(change.By, " ")
		report.Changes[fmt.Sprintf("%s %d>%d", by, change.From, change.To)]++
	}
	return nil
}

// compare does the step on both sides. An error is a database that cannot be asked.
func (st *step) compare(ctx context.Context, model, postgres side) (difference string, err error) {
	want, wantErr := st.do(ctx, model)
	got, gotErr := st.do(ctx, postgres)
	if (wantErr != nil) != (gotErr != nil) {
		return fmt.Sprintf("the model's error is %v, PostgreSQL's is %v", wantErr, gotErr), ctx.Err()
	}
	if wantErr == nil {
		if difference := st.differ(want, got); difference != "" {
			return "the answers differ:\n" + difference, nil
		}
		if st.learn != nil {
			st.learn(want)
		}
	}
	wantRows, err := model.dump(ctx)
	if err != nil {
		return "", err
	}
	gotRows, err := postgres.dump(ctx)
	if err != nil {
		return "", err
	}
	if !slices.Equal(wantRows, gotRows) {
		return "the tables differ:\n" + differences(wantRows, gotRows), nil
	}
	return "", nil
}

// differ compares the answers. A cut one may be any part of the whole, of the right size.
func (st *step) differ(want, got []string) string {
	if len(st.among) == 0 || len(want) == len(st.among) {
		if slices.Equal(want, got) {
			return ""
		}
		return differences(want, got)
	}
	left := slices.Clone(st.among)
	for _, line := range got {
		at := slices.Index(left, line)
		if at < 0 {
			return differences(st.among, got)
		}
		left = slices.Delete(left, at, at+1)
	}
	if len(got) != len(want) {
		return fmt.Sprintf("%d lines, want %d of %d", len(got), len(want), len(st.among))
	}
	return ""
}

// differences prints the lines that only one side has, or both in another order.
func differences(want, got []string) string {
	var text strings.Builder
	for _, line := range want {
		if !slices.Contains(got, line) {
			fmt.Fprintf(&text, "  model:      %s\n", line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			fmt.Fprintf(&text, "  PostgreSQL: %s\n", line)
		}
	}
	if text.Len() == 0 {
		fmt.Fprintf(&text, "  model:      %q\n  PostgreSQL: %q\n", want, got)
	}
	return text.String()
}

func describe(seed uint64, done []*step, difference string) string {
	var text strings.Builder
	for i, step := range done {
		fmt.Fprintf(&text, "%3d %s %+v\n", i+1, step.kind, step.what)
	}
	fmt.Fprintf(&text, "seed %d, action %d: %s", seed, len(done), difference)
	return short(text.String())
}

// TooLittle says in sentences what was not tested enough. The floors grow with the number of actions.
func (r *Report) TooLittle() []string {
	floor := r.Planned / 1000
	missing := tooFew("was done", r.Kinds, Kinds(), floor)
	missing = append(missing, tooFew("was met", r.Saw, outcomes, floor)...)
	return append(missing, tooFew("changed an event", r.Changes, changes, r.Planned/6000)...)
}

func tooFew(what string, counts map[string]int, names []string, floor int) []string {
	var missing []string
	for _, name := range names {
		if counts[name] < floor {
			missing = append(missing, fmt.Sprintf("%s %s %d times, at least %d are wanted", name, what, counts[name], floor))
		}
	}
	return missing
}

// outcomes are what must have been met: an action that never does anything shows nothing.
var outcomes = []string{
	"acquired", "ended", "beats_too_late", "looks_at_lost_lanes", "taken_over", "taken_over_with_note",
	"fence_with_writers", "rows_read", "read_after_writers_left",
	"read_of_lost_lanes", "settles_applied", "settles_refused", "settles_undone", "settles_too_late",
	"held_keys", "due_keys", "due_pages", "held_rows", "old_parked", "verbs_done", "verbs_refused",
	"pauses_done", "pauses_refused", "resumes_done", "resumes_refused", "heartbeats_of_a_pause",
	"limits_done", "limits_refused", "heartbeats_of_a_limit",
	"requests_made", "requests_made_before", "requests_refused", "requests_canceled", "requests_in_hands",
	"requests_taken", "requests_taken_alone", "requests_forgotten", "requests_of_missing_types", "takes_of_lost_lanes",
	"requests_settled", "requests_given_back_late", "request_settles_refused", "heartbeats_of_a_request",
}

// changes are all the ways that an event can go. A skip and a discard also let those go who waited.
var changes = []string{
	"settle 0>1", "settle 0>2", "settle 0>3", "settle 0>4", "settle 0>5", "settle 0>6",
	"settle 1>1", "settle 1>2", "settle 1>4", "settle 1>5", "settle 1>6",
	"settle 2>4", "settle 2>5",
	"settle 3>1", "settle 3>2", "settle 3>4", "settle 3>5", "settle 3>6",
	"unpark 2>1", "redrive 4>1", "redrive 5>1", "release 2>1",
	"skip 4>5", "skip 3>1", "discard 4>7", "discard 5>7", "discard 3>1",
}

// Line is the report as one line.
func (r *Report) Line() string {
	var text strings.Builder
	fmt.Fprintf(&text, "proof-model sequences=%d actions=%d kinds=%d changes=%d", r.Sequences, r.Actions, len(r.Kinds),
		len(r.Changes))
	for _, what := range slices.Sorted(maps.Keys(r.Saw)) {
		fmt.Fprintf(&text, " %s=%d", what, r.Saw[what])
	}
	mismatches := 0
	if r.Mismatch != "" {
		mismatches = 1
	}
	fmt.Fprintf(&text, " mismatches=%d ok=%v", mismatches, mismatches == 0 && len(r.TooLittle()) == 0)
	return text.String()
}
