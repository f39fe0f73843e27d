package mutants

// waiting are about events that wait, are parked, are suspected or die.
var waiting = []mutant{
	{
		"old-look-ends-hold", "a look that found nothing ends a hold, though something changed since it began", "S4",
		[]change{{coreTests + "/hold.go", "case h.stale:", "case h.stale && len(rows) > 0:"}},
		test(coreTests, "TestALookThatIsOlderThanAChangeEndsNoHold", "out of order"),
	},
	{
		"due-page-without-place", "every look for due retries begins at the first, however many are due and cannot go", "L1",
		[]change{{coreTests + "/hold.go", "if c.held.onward {", "if false {"}},
		test(coreTests, "TestRedriveBeforeALineThatHangs",
			"a minute after the redrive [0-9]+ of 200 good events are published"),
	},
	{
		"parked-since-created", "a parked event is as old as the event is, however short it is parked", "V1",
		[]change{{
			storeTests + "/sql/old_parked.sql", "AND p.since <= (",
			"AND (SELECT e.created_at FROM {schema}.outbox_events e WHERE e.lane = p.lane AND e.seq = p.seq) <= (",
		}},
		test(storeTests, "TestOldParked", "parked for half a minute are "),
	},
	{
		"outlived-counts-nothing", "a relay that has outlived a publish of the noted event does not speak for it", "C17",
		[]change{{
			storeTests + "/sql/unnote.sql",
			"SET deaths = m.deaths - ($5::boolean AND m.token IS NOT DISTINCT FROM $4::uuid)::integer, token = NULL",
			"SET token = NULL",
		}},
		test(storeTests, "TestNote", "outlived once: "),
	},
	{
		"blamed-in-its-turn", "a relay that takes care does not begin with what others died with", "C17",
		[]change{{coreTests + "/care.go", "!l.faced && held < 2*c.config.HeldPeriod", "false"}},
		test(coreTests, "TestATopicThatHangsWithSomethingHeldWhileRelaysAreKilled", "events of a topic that hangs are dead"),
	},
	{
		"sent-beside-a-suspect",
		"a relay sends other events while a suspect waits for the time at which it may be declared dead", "C17",
		[]change{{coreTests + "/care.go", "return held < 2*(c.config.Deadline+c.config.HeldPeriod)", "return false"}},
		test(coreTests, "TestSeveralEventsThatKill", "killer [0-9] is in state [0-2]"),
	},
	{
		"noted-overtaken", "another event is sent between a note and the event that it names", "C17",
		[]change{{coreTests + "/publish.go", "\t\t\tc.notedFirst()\n", ""}},
		test(coreTests, "TestWhatIsNotedIsSent", "noted are .*, and sent are"),
	},
	{
		"care-ends-beside-a-note", "care ends while the noted event is in flight", "C17",
		[]change{
			{
				coreTests + "/care.go", "return l.careful || l.noted != outbox.ID{} && (l.inFlight > 0 || c.soonWritten(l) > 0)",
				"return l.careful",
			},
		},
		test(coreTests, "TestCareLastsUntilTheNotedEventIsAnswered", "events are in flight, and .* is noted"),
	},
	{
		"broken-type-unchecked",
		"once most events of a type have broken their contract, all of them are parked without a look", "V4",
		[]change{{
			coreTests + "/line.go", "\tdefault:\n\t\tl := c.lineOf(key)\n",
			"\tcase c.typeOf(r.Type).broken >= enoughBroken:\n\t\tc.park(r, key, \"like most\")\n\tdefault:\n\t\tl := " +
				"c.lineOf(key)\n",
		}},
		test(coreTests, "TestMalformedEventsOfOneTenantStopNobodyElse", "0 of 30 good events are out"),
	},
	{
		"broken-counted-anew", "one event that keeps its contract begins the count of those that do not anew", "V4",
		[]change{{coreTests + "/publish.go", "c.typeOf(r.Type).record(false)", "*c.typeOf(r.Type) = typeHealth{}"}},
		test(coreTests, "TestFewThatPassDoNotMakeABadDeployDeadlier", `the states are map\[dead:[0-9]{3} `),
	},
	{
		"contract-charged", "an event that breaks its contract is charged with an attempt, though nothing was sent", "S9",
		[]change{
			{coreTests + "/blame.go", "if !outcome.Contract { // else nothing was sent", "if true { // else nothing was sent"},
		},
		test(coreTests, "TestABrokenContractCountsNoAttempt", "state 5 after 3 attempts"),
	},
	{
		"unknown-death-blocks", "an event of an unknown type that dies blocks its aggregate, and nobody has asked for that",
		"L3",
		[]change{{coreTests + "/blame.go", "if route.Block {", "if route.Block || route.Topic == \"\" {"}},
		test(coreTests, "TestTheDeathOfAnUnknownTypeStopsNobody", "0 of 2 are dead"),
	},
	{
		"unknown-ages-in-turn", "an event of an unknown type begins to age only when those before it are dead", "V1",
		[]change{{
			coreTests + "/hold.go",
			"for _, event := range events {\n\t\tif r := c.takeHeld(now, h, event); r != nil {\n\t\t\tc.notKnown(r)",
			"for _, event := range events[:1] {\n\t\tif r := c.takeHeld(now, h, event); r != nil {\n\t\t\tc.notKnown(r)",
		}},
		test(coreTests, "TestWhatWaitsOfAnUnknownTypeIsParked", "1 of 5 are parked"),
	},
}
