package mutants

// limiting are about topics that operators have limited.
var limiting = []mutant{
	{
		"limit-not-shared",
		"every relay takes the whole limit of a topic, and all together as many times as much as there are relays", "S-6",
		[]change{{
			coreTests + "/limit.go", "\tshare := b.rate * part\n", "\tshare := b.rate * max(part, 1)\n",
		}},
		test(coreTests, "TestALimitIsShared", `[0-9]+ were sent within a second`),
	},
	{
		"limit-ignored-by-copies",
		"copies of published events go out as fast as ever, whatever the limit of their topic says", "S-6",
		[]change{{
			coreTests + "/redeliver.go", " || l.route.waiting.len() > 0 || !l.route.mayBegin():",
			" || l.route.waiting.len() > 0:",
		}},
		test(coreTests, "TestCopiesKeepToTheLimit", `[0-9]+ copies were sent, 6 at most`),
	},
	{
		"copies-cost-no-tokens",
		"copies wait for the limit of their topic, and events beside them get all of it once more", "S-6",
		[]change{{
			coreTests + "/redeliver.go", "\tl.route.begins()\n", "",
		}},
		test(coreTests, "TestCopiesKeepToTheLimit", `[0-9]+ copies were sent, [3-6] at most`),
	},
	{
		"limit-saved-up",
		"what a limited topic did not use at night goes out at once in the morning", "S-6",
		[]change{{
			coreTests + "/limit.go", "\tb.tokens = min(b.tokens, max(1, share*burst.Seconds()))\n", "",
		}},
		test(coreTests, "TestALimitIsNotSavedUp", `[0-9]+ were sent within a second`),
	},
	{
		"limit-of-what-is-given-away",
		"a relay counts lanes that it gives away until it hears that they are gone, when another has them already", "S-6",
		[]change{{coreTests + "/limit.go", "if !l.draining {", "if l != nil {"}},
		test(coreTests, "TestALimitIsNotKeptForLanesThatGo", `[0-9]+ were sent for lanes that are given away`),
	},
	{
		"limit-not-told",
		"a heartbeat does not tell of limits, and no relay keeps to one", "S-6",
		[]change{{"relay/internal/pgstore/sql/limits.sql", "ORDER BY topic", "WHERE topic = '' ORDER BY topic"}},
		sequences(few),
	},
}
