package mutants

// history are about what the tables tell afterwards: what went wrong with an event, and what a topic carried.
var history = []mutant{
	{
		"attempt-of-a-publish",
		"a publish that succeeded is told as an attempt that failed", "OP-2",
		[]change{{
			storeTests + "/settle.go",
			"list = append(list, change{Found: found, next: core.Published})",
			"list = append(list, change{Found: found, next: core.Published, tried: core.Tried{Class: core.Unknown}})",
		}},
		test(storeTests, "TestAttempts", `of the others: \[.*"\(1,unknown,`),
	},
	{
		"first-attempts-forgotten",
		"of many attempts the first ones are forgotten, and with them how it began", "OP-2",
		[]change{{
			storeTests + "/sql/settle.sql",
			"AND a.number > 5 AND a.number <= t.number - 15",
			"AND a.number <= t.number - 15",
		}},
		test(storeTests, "TestAttempts", `got \["\(16,rejected`),
	},
	{
		"attempts-without-end",
		"of an event that fails for weeks every attempt is kept", "OP-2",
		[]change{{storeTests + "/sql/settle.sql", "a.number <= t.number - 15", "a.number <= t.number - 15000"}},
		test(storeTests, "TestAttempts", `got \["\(1,rejected.*"\(6,rejected`),
	},
	{
		"attempt-in-place-of-another",
		"an attempt gets the number of one that the event has had, and is lost", "OP-2",
		[]change{{
			storeTests + "/sql/settle.sql",
			"ORDER BY a.number DESC LIMIT 1), 0) AS number",
			"ORDER BY a.number LIMIT 1), 0) AS number",
		}},
		test(storeTests, "TestAttempts", `2 of 20 are kept`),
	},
	{
		"attempt-of-one-class",
		"every attempt is told as the event's fault, whatever the broker said", "OP-2",
		[]change{{
			coreTests + "/settle.go",
			"Tried{Class: outcome.Class, Topic: f.key.topic}",
			"Tried{Class: Rejected, Topic: f.key.topic}",
		}},
		test(coreTests, "TestSettlesTellOfThePublishThatFailed", `the history has map.*want map.*terminal`),
	},
	{
		"attempt-of-what-was-not-sent",
		"an event that broke its contract has an attempt, though nothing was sent", "OP-2",
		[]change{{
			coreTests + "/settle.go",
			"outcome.Class == NotSent || outcome.Contract {",
			"outcome.Class == NotSent {",
		}},
		test(coreTests, "TestSettlesTellOfThePublishThatFailed", `the history has map.*terminal.*terminal.*want`),
	},
	{
		"attempts-outlive-their-event",
		"retention deletes an event, and what went wrong with it stays for ever", "R1",
		[]change{{
			"relay/retention/sql/events.sql",
			"AS k(id) WHERE a.event_id = k.id",
			"AS k(id) WHERE a.event_id = k.id AND false",
		}},
		test(retentionTests, "TestAttemptsGoWithTheirEvent", `150 attempts are left, want 60`),
	},
	{
		"minute-counted-twice",
		"a minute that is written down is kept, and is written again", "OP-2",
		[]change{{minuteTests + "/write.go", "delete(c.over, at)", "_ = at"}},
		test(minuteTests, "TestMinutes", `the second minute has`),
	},
	{
		"minutes-while-idle",
		"a topic for which nothing waits and nothing happens has a row for every minute", "OP-2",
		[]change{{minuteTests + "/write.go", `topic == "" || found.Events == 0 ||`, `topic == "" ||`}},
		test(minuteTests, "TestWhatWaits", `got &{.*} of 2`),
	},
	{
		"minutes-without-end",
		"what a topic carried is kept for longer than 72 hours", "R1",
		[]change{{minuteTests + "/sql/forget.sql", "interval '72 hours'", "interval '72 days'"}},
		test(minuteTests, "TestWhatIsOldGoes", `what is kept is 73 hours,71 hours,orders`),
	},
	{
		"bucket-below-its-bound",
		"a latency that is just the bound of its bucket is counted as longer", "OP-2",
		[]change{{minuteTests + "/minutes.go", "if latency <= bound {", "if latency < bound {"}},
		test(minuteTests, "TestBuckets", `5ms is in bucket 1`),
	},
}
