package check_test

import (
	"testing"

	"github.com/posthaste-dev/posthaste/internal/check"
)

func TestStatesAndDeadLetters(t *testing.T) {
	t.Parallel()
	sent := func(records ...check.Record) check.History {
		return append(check.History{wrote(1), delivery(1, 1), end()}, records...)
	}
	unset := row(1, check.Published)
	unset.Row.Published = false
	testAll(t, []definition{
		{
			name: "published and tried again", count: check.IllegalTransitions,
			bad: sent(change(1, check.Published, check.Retrying)), good: sent(change(1, check.Retrying, check.Published)),
		},
		{
			name: "back to ready", count: check.IllegalTransitions, bad: sent(change(1, check.Waiting, check.Ready)),
			good: sent(change(1, check.Ready, check.Waiting)),
		},
		{
			name: "revived by nobody", count: check.IllegalTransitions, bad: sent(change(1, check.Dead, check.Retrying)),
			good: sent(change(1, check.Dead, check.Retrying), action(1, check.Redrive, 0)),
		},
		{
			name: "skipped by nobody", count: check.IllegalTransitions, bad: sent(change(1, check.DeadBlocking, check.Dead)),
			good: sent(change(1, check.DeadBlocking, check.Dead), action(1, check.Skip, 0)),
		},
		{
			name: "settled twice", count: check.IllegalTransitions,
			bad:  sent(settle(1, check.Published, check.Applied), settle(1, check.Published, check.Applied)),
			good: sent(settle(1, check.Published, check.Uncertain), settle(1, check.Published, check.Applied)),
		},
		{
			name: "published without a time", count: check.IllegalTransitions, bad: sent(unset),
			good: sent(row(1, check.Published)),
		},
		{
			name: "gone without retention", count: check.IllegalTransitions,
			bad:  check.History{wrote(1), delivery(1, 1), ended(check.End{Dumped: true})},
			good: check.History{wrote(1), delivery(1, 1), ended(check.End{Dumped: true, Retention: true})},
		},
		{
			name: "stopped blocking by itself", count: check.IllegalTransitions,
			bad:  check.History{wrote(1), row(1, check.Dead), letter(1, true, 0), end()},
			good: check.History{wrote(1), row(1, check.DeadBlocking), letter(1, true, 0), end()},
		},
		{
			name: "blocks against its letter", count: check.IllegalTransitions,
			bad:  check.History{wrote(1), row(1, check.DeadBlocking), letter(1, false, 0), end()},
			good: check.History{wrote(1), row(1, check.Dead), letter(1, false, 0), end()},
		},
		{
			name: "delivered, then dead", count: check.DeadWithoutLetter, bad: sent(row(1, check.Dead)),
			good: sent(row(1, check.Dead), letter(1, false, 0)),
		},
		{
			name: "published", count: check.LetterWithoutDead, bad: sent(row(1, check.Published), letter(1, true, 0)),
			good: sent(row(1, check.Published), letter(1, true, 0), action(1, check.Redrive, 0)),
		},
		{
			name: "died twice", count: check.LetterWithoutDead,
			bad:  sent(row(1, check.DeadBlocking), letter(1, true, 0), letter(1, true, 0)),
			good: sent(row(1, check.DeadBlocking), letter(1, true, 0), action(1, check.Redrive, 0), letter(1, true, 0)),
		},
	})
}

// A death needs a publish that failed since the last redrive: a settle that is sent again undoes no redrive.
func TestDeathsHaveReasons(t *testing.T) {
	t.Parallel()
	const dead = check.DeadBlocking
	failed := []check.Record{publish(1), publishFailed(1, check.OfEvent)}
	broken := []check.Record{publish(1), publishFailed(1, check.Broken)}
	redriven := []check.Record{change(1, dead, check.Retrying), action(1, check.Redrive, 0)}
	history := func(interleaved bool, parts ...[]check.Record) (h check.History) {
		h = check.History{wrote(1)}
		for _, part := range parts {
			h = append(h, part...)
		}
		return append(h, row(1, dead), ended(check.End{Drained: true, Interleaved: interleaved}))
	}
	died := func(from check.State, reason string, attempts int) []check.Record {
		l := letter(1, true, 0)
		l.Letter.Reason, l.Letter.Attempts = reason, attempts
		return []check.Record{change(1, from, dead), l}
	}
	first, second := died(check.Ready, "rejected", 0), died(check.Retrying, "rejected", 0)
	testAll(t, []definition{
		{
			name: "a redrive undone by the same failure", count: check.IllegalTransitions,
			bad:  history(false, failed, first, redriven, second),
			good: history(false, failed, first, redriven, failed, second),
		},
		{
			name: "a redrive undone after many failures", count: check.IllegalTransitions,
			bad:  history(true, failed, failed, first, redriven, second),
			good: history(false, failed, failed, first, redriven, second), // nobody knows what came when
		},
		{
			name: "dead without a publish", count: check.IllegalTransitions,
			bad:  history(true, first, failed),
			good: history(true, failed, first),
		},
		{
			name: "dead of its type, or of killing relays", count: check.IllegalTransitions,
			bad: history(true, []check.Record{publish(1)}, died(check.Parked, "too_large", 0), redriven,
				died(check.Retrying, "crash_suspect", 0)),
			good: history(true, []check.Record{publish(1)}, died(check.Parked, "unknown_event_type", 0), redriven,
				died(check.Retrying, "crash_suspect", 0)),
		},
		{
			name: "dead of a broken contract, which is no attempt", count: check.ChargedWrongly,
			bad:  history(true, failed, broken, died(check.Retrying, "invalid_payload", 2)),
			good: history(true, failed, broken, died(check.Retrying, "invalid_payload", 1)),
		},
		{
			name: "a redrive undone by the same broken contract", count: check.IllegalTransitions,
			bad: history(true, broken, broken, died(check.Ready, "invalid_payload", 0), redriven,
				died(check.Retrying, "invalid_payload", 0)),
			good: history(true, broken, died(check.Ready, "invalid_payload", 0), redriven, broken,
				died(check.Retrying, "invalid_payload", 0)),
		},
		{
			name: "a broken contract is no reason to die of the broker's refusal", count: check.IllegalTransitions,
			bad:  history(true, broken, died(check.Ready, "rejected", 0)),
			good: history(true, failed, died(check.Ready, "rejected", 0)),
		},
		{
			name: "nor to be out of attempts", count: check.IllegalTransitions,
			bad:  history(true, broken, broken, broken, died(check.Ready, "max_attempts", 0)),
			good: history(true, failed, broken, died(check.Ready, "max_attempts", 0)),
		},
		{
			name: "a refusal is no reason to die of the contract", count: check.IllegalTransitions,
			bad:  history(true, failed, died(check.Ready, "invalid_payload", 0)),
			good: history(true, broken, died(check.Ready, "invalid_payload", 0)),
		},
		{
			name: "the attempts of two deaths and the failures of one", count: check.ChargedWrongly,
			bad: history(true, failed, failed, died(check.Ready, "rejected", 2), redriven, failed,
				died(check.Retrying, "rejected", 2)),
			good: history(true, failed, failed, died(check.Ready, "rejected", 2), redriven, failed,
				died(check.Retrying, "rejected", 1)),
		},
	})
}

// The table of states, written out once more: every pair that is not here is illegal.
func TestLegalChanges(t *testing.T) {
	t.Parallel()
	relays := map[check.State][]check.State{
		check.Absent:   {check.Ready},
		check.Ready:    {check.Published, check.Retrying, check.Parked, check.Waiting, check.Dead, check.DeadBlocking},
		check.Retrying: {check.Published, check.Retrying, check.Parked, check.Dead, check.DeadBlocking},
		check.Parked:   {check.Retrying, check.Dead, check.DeadBlocking},
		check.Waiting:  {check.Published, check.Retrying, check.Parked, check.Dead, check.DeadBlocking},
		// Retention.
		check.Published: {check.Absent},
		check.Discarded: {check.Absent},
	}
	operators := map[[2]check.State]check.Verb{
		{check.Dead, check.Retrying}:          check.Redrive,
		{check.DeadBlocking, check.Retrying}:  check.Redrive,
		{check.Dead, check.Discarded}:         check.Discard,
		{check.DeadBlocking, check.Discarded}: check.Discard,
		{check.DeadBlocking, check.Dead}:      check.Skip,
	}
	for from := check.Ready; from <= check.Absent; from++ {
		for to := check.Ready; to <= check.Absent; to++ {
			wantVerb, want := operators[[2]check.State{from, to}]
			for _, s := range relays[from] {
				want = want || s == to
			}
			if verb, legal := check.LegalChange(from, to); legal != want || verb != wantVerb {
				t.Errorf("from %s to %s: %q %t, want %q %t", from, to, verb, legal, wantVerb, want)
			}
		}
	}
}
