package mutants

// growing are about an outbox with much in it: looks go page by page, and little is kept of what stands still.
var growing = []mutant{
	{
		"looked-at-before-it-is-listed", "a held event is published before all was listed that it must wait for", "S4",
		[]change{{coreTests + "/hold.go", "case !h.lane.opened: ", "case false: "}},
		test(coreTests, "TestWhatIsHeldIsListedInPages", "was sent, want all in order"),
	},
	{
		"page-taken-for-all", "a lane opens when the first page of what is held in it was listed", "S4",
		[]change{{coreTests + "/lanes.go", "if len(keys) >= request.Limit && l.number", "if false && l.number"}},
		test(coreTests, "TestWhatIsHeldIsListedInPages", `was sent, want \[\]`),
	},
	{
		"blocked-forgotten", "of a line behind a dead event nothing is kept", "S4",
		[]change{{coreTests + "/hold.go", "|| c.isBlocked(l, key) || c.isBlocked(l, unknown)", ""}},
		test(coreTests, "TestALineThatIsBlockedGoesOnWhenItIsReleased", "1 were sent"),
	},
	{
		"detached-without-a-window", "behind an open transaction a topic's own reader reads all there is at once", "L1",
		[]change{{coreTests + "/detached.go", "Window: c.movingWindow(at.from, at.c)", "Window: c.safeWindow(at.from)"}},
		test(coreTests, "TestADetachedTopicReadsInWindowsBehindAnOpenWriter", "reads had no window"),
	},
	{
		"names-that-cannot-be-held", "an event is parked whose names are too long for an index, and no settle goes through",
		"A13",
		[]change{{coreTests + "/line.go", "if r.Unholdable() {", "if false {"}},
		test(coreTests, "TestNamesThatCannotBeHeld", "an event is in state 2, want 5"),
	},
	{
		"detached-overtakes", "a topic's own reader reads on though a transaction has ended behind it", "S4",
		[]change{{coreTests + "/detached.go", "\trequest.Writers = r.cursor.except\n", ""}},
		seeds(some, "order"),
	},
	{
		"names-without-end", "people are told of every type name that somebody makes up", "V1",
		[]change{{coreTests + "/blame.go", "if len(c.unknown) > mostUnknown || ", "if "}},
		test(coreTests, "TestTypeNamesWithoutEnd", "alarms, the last"),
	},
	{
		"idle-without-a-word", "a relay for which there is no lane waits and says nothing", "C1",
		[]change{{coreTests + "/members.go", "if spare && !m.spare {", "if false {"}},
		test(coreTests, "TestARelayWithoutALaneSaysSo", `the alarms are \[\]`),
	},
}
