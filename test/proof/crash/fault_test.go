package crash

import (
	"testing"

	"github.com/posthaste-dev/posthaste/internal/check"
)

// D1: a crash between the dead letter and the dead row leaves both or neither.
func TestFaultD1CrashAroundADeadLetter(t *testing.T) {
	t.Parallel()
	report := play(t, small(t, "dead.before_insert", "dead.after_insert", "dead.before_commit", "dead.after_commit"))
	if !report.OK() || report.Sum(check.DeadLettered) == 0 {
		t.Error("it does not pass")
	}
}

// R9: a migrator that is killed leaves nothing half done, and the next one goes on.
func TestFaultR9CrashInAMigration(t *testing.T) {
	t.Parallel()
	if !play(t, small(t, "migrate.before", "migrate.mid", "migrate.after")).OK() {
		t.Error("it does not pass")
	}
}

// C16: a relay dies when it writes down that an event has failed for the last time. The event is neither tried for
// ever nor forgotten.
func TestFaultC16CrashAtTheLastAttempt(t *testing.T) {
	t.Parallel()
	const last = " WHEN (NEW.error_reason = 'max_attempts') EXECUTE FUNCTION {schema}.crash_wait()"
	for name, h := range map[string]hook{
		"taken back": {trigger: "TRIGGER crash BEFORE INSERT ON {schema}.outbox_dlq FOR EACH ROW" + last},
		"committed": {
			trigger: "CONSTRAINT TRIGGER crash AFTER INSERT ON {schema}.outbox_dlq INITIALLY DEFERRED FOR EACH ROW" + last,
			commits: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := newTrial(small(t), "dead.before_insert")
			must(t, err)
			s.hook = h
			outcome, err := s.run(t.Context())
			must(t, err)
			report := &Report{plan: s.plan, Outcomes: []*Outcome{outcome}}
			must(t, report.Print(t.Output()))
			if !report.OK() {
				t.Error("it does not pass")
			}
		})
	}
}

// C17 and D11: an event that kills whoever publishes it is quarantined, also when it is redriven as it is, and
// nothing else dies of it.
func TestFaultC17D11AnEventThatKills(t *testing.T) {
	t.Parallel()
	report := play(t, small(t, Poison))
	if !report.OK() || report.Outcomes[0].Poisoned == 0 {
		t.Error("it does not pass")
	}
}

// C18: a relay that is asked to stop in the middle finishes what it has begun: nothing comes twice.
func TestFaultC18StoppedInTheMiddle(t *testing.T) {
	t.Parallel()
	report := play(t, small(t, Stops))
	if !report.OK() || report.Outcomes[0].Stops == 0 {
		t.Error("it does not pass")
	}
}
