package inbox

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"
)

const repository = "github.com/posthaste-dev/posthaste/"

// fault is a row of the fault model's part about consumers.
type fault struct {
	id   string
	what string
	// tests are those that show it besides the scenarios, or instead of them.
	tests []string
	// scenarios are those that show it.
	scenarios []string
}

var faults = []fault{
	{
		"I1", "a crash between the mark and the effect", []string{
			"test/suite/redisinbox.TestKilledConsumersOfDo", "test/suite/redisinbox.TestKilledConsumersOfTheOneCallForm",
		}, []string{theKilling, theOneCall},
	},
	{
		"I2", "a crash between the effect and the mark",
		[]string{"test/suite/inbox.TestFaultI2KilledAnywhere"},
		[]string{theKilling},
	},
	{"I3", "a copy arrives while the first is handled", []string{
		"test/suite/inbox.TestFaultI3TheSecondWaits", "test/suite/redisinbox.TestACopyOfAHeldEventIsDelayed",
		"test/suite/redisinbox.TestConcurrentCopiesRunOneHandler",
		"test/suite/consumer/natsjetstream.TestFaultI3HeldIsNotAcknowledged",
	}, []string{theKilling}},
	{"I4", "the first handler is slower than its mark lasts", []string{
		"test/suite/redisinbox.TestAProcessThatStandsStillLosesItsHold",
		"test/suite/redisinbox.TestAFinishTellsThatTheHoldWasLost",
		"test/suite/redisinbox.TestAHoldIsExtendedWhileTheHandlerRuns",
	}, []string{theStandstill, theSlow}},
	{"I5", "a failure removes somebody else's mark", []string{
		"test/suite/redisinbox.TestAFailureRemovesOnlyItsOwnMark", "test/suite/redisinbox.TestDeleteTakesBackItsOwnMarkOnly",
		"test/suite/redisinbox.TestTheModel",
	}, []string{theStandstill}},
	{
		"I6", "Redis evicts marks",
		[]string{"test/suite/redisinbox.TestShortMemory", "test/suite/redisinbox.TestCheckOfServers"},
		nil,
	},
	{
		"I7", "Redis fails over and forgets",
		[]string{"test/suite/redisinbox.TestARestartForgetsWithoutPersistence"},
		[]string{theForgetting},
	},
	{
		"I8", "Redis is down", []string{
			"test/suite/redisinbox.TestRedisDownFailsClosed", "test/suite/redisinbox.TestRedisDownFailsOpenIfToldTo",
		}, []string{theForgetting},
	},
	{
		"I9", "marks go before replays do",
		[]string{"inbox/redisinbox.TestKeepIsComparedWithTheWindows", "test/suite/inbox.TestRetentionSettings"},
		nil,
	},
	{"I10", "two keys look alike", []string{"inbox/redisinbox.TestKeysAreInjective"}, nil},
	{
		"I11", "copies come out of order",
		[]string{"test/suite/inbox.TestFaultI11OutOfOrder", "test/suite/inbox.TestNewerTakesTurns"},
		nil,
	},
	{
		"I12", "the acknowledgement is lost after the effect",
		[]string{"test/suite/consumer/natsjetstream.TestFaultI12AckLost"},
		[]string{theKilling},
	},
	{
		"I13", "the handler takes longer than the broker waits",
		[]string{"test/suite/consumer/natsjetstream.TestFaultI13SlowHandler"},
		[]string{theSlow},
	},
	{
		"I14", "a message that no handler can take",
		[]string{"test/suite/consumer/natsjetstream.TestFaultI14Poison"},
		[]string{theHopeless, theKilling},
	},
	{
		"I15", "the inbox grows", []string{
			"test/suite/inbox.TestFaultI15RetentionForgetsTheOld", "test/suite/inbox.TestFaultI15TheCostStaysFlat",
		}, nil,
	},
	{"I16", "a handler commits a transaction of its own", []string{"test/suite/inbox.TestFaultI16OtherTransactions"}, nil},
}

// runTests runs the tests that the faults name, a package at a time, or reads what became of them in an earlier run.
func (r *Report) runTests(ctx context.Context) error {
	packages := map[string][]string{}
	for _, f := range faults {
		for _, test := range f.tests {
			folder, name, _ := strings.Cut(test, ".")
			packages[folder] = append(packages[folder], name)
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(packages)) {
		if r.plan.Results != "" {
			if err := r.tests.Load(r.plan.Results, repository+folder, packages[folder]...); err != nil {
				return err
			}
			continue
		}
		if err := r.tests.Run(ctx, nil, "-run", "^("+strings.Join(packages[folder], "|")+")$",
			repository+folder); err != nil {
			return err
		}
	}
	return nil
}

// outcome is what became of a test.
func (r *Report) outcome(test string) string { return r.tests.Outcomes[path.Base(test)] }
