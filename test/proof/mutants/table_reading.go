package mutants

// reading are about writers and servers: what is known of them, and what a read may begin at.
var reading = []mutant{
	{
		"is-called-ignored",
		"the first number of a fresh sequence is taken for drawn", "A15",
		[]change{
			{
				storeTests + "/sql/fence_sequence.sql", "CASE WHEN is_called THEN last_value ELSE last_value - 1 END", "last_value",
			},
		},
		test(storeTests, "TestFenceSeesEveryWriter", "a fresh outbox has {Last:1 "),
	},
	{
		"writers-listed-first",
		"a fence lists the open transactions before it reads the sequence", "A15",
		[]change{
			{
				storeTests + "/fence.go",
				"\t\tbatch.Queue(s.sql.fenceBarrier)\n",
				"\t\tbatch.Queue(s.sql.fenceBarrier)\n\t\tbatch.QueuedQueries[0], batch.QueuedQueries[1] = " +
					"batch.QueuedQueries[1], batch.QueuedQueries[0]\n",
			},
		},
		test(storeTests,
			"TestTheFenceListsWritersAfterItsNumber", `Writers:\[\]}, <nil>, and .* has drawn the numbers up to 2`),
	},
	{
		"gone-writers-ignored",
		"a read does not go back to what a writer left that has ended", "A15",
		[]change{
			{coreTests + "/reader.go", "\trequest.Writers = r.cursor.except\n\trequest.Exclude", "\trequest.Exclude"},
		},
		seeds(few, "order"),
	},
	{
		"standby-ignored",
		"a fence from a server in recovery is used", "C21",
		[]change{
			{coreTests + "/fence.go", "case seen.Standby:", "case false:"},
		},
		test(coreTests, "TestNothingIsReadFromAStandby", " reads, .* before, 0 alarms"),
	},
	{
		"restart-ignored",
		"what was known of one server is believed of the next", "S1",
		[]change{
			{
				coreTests + "/fence.go",
				"f.incarnation != seen.Incarnation\n",
				"f.incarnation != seen.Incarnation && false\n",
			},
			{
				coreTests + "/fence.go",
				"if setBack || c.members.made != seen.Incarnation ||\n\t\tslices.ContainsFunc(c.sorted, func(l *lane) bool { " +
					"return l.server != seen.Incarnation }) {",
				"if setBack {",
			},
			{coreTests + "/members.go", "case m.registered && answer.Incarnation != m.made:", "case false:"},
		},
		test(coreTests, "TestAnotherServer", "lane 0 is held as before"),
	},
	{
		"read-without-the-lane",
		"a read shows what is in lanes that are not the relay's", "S6",
		[]change{{storeTests + "/sql/lost.sql", "WHERE {relay}::uuid IS NOT NULL", "WHERE false"}},
		test(storeTests, "TestAnEndedRelayDoesNothing", "ended, read: it had an effect: true"),
	},
	{
		"cursor-without-watermark",
		"a lane is read on from the last number that was seen", "A15",
		[]change{
			{
				coreTests + "/reader.go",
				"w = max(w, min(s.safe, cut))\n",
				"w = max(w, min(s.safe, cut), read.last)\n",
			},
		},
		seeds(few, "order"),
	},
	{
		"cut-taken-for-complete",
		"a read that was cut by its limit is taken for all there is", "S1",
		[]change{
			{coreTests + "/reader.go", "return l.count >= l.Limit", "return false && l.count >= l.Limit"},
		},
		seeds(few, "stuck"),
	},
	{
		"old-answer-believed",
		"the answer to a read moves bounds that went back since it was sent", "S1",
		[]change{
			{coreTests + "/reader.go", "return l.lane.generation == l.generation\n", "return true\n"},
		},
		test(coreTests, "TestFloorOfADrainedLane", "given back with floor 2, and event 2 is ready below it"),
	},
	{
		"forgotten-not-read-again",
		"what is dropped from memory is not read again", "S1",
		[]change{
			{
				coreTests + "/line.go",
				"\tr.lane.w, r.lane.c = min(r.lane.w, r.Seq-1), min(r.lane.c, r.Seq-1)\n\tr.lane.generation++\n",
				"",
			},
		},
		seeds(some, "order"),
	},
	{
		"read-by-created-at",
		"ready events are read in the order of their time", "A14",
		[]change{
			{storeTests + "/sql/read.sql", "ORDER BY r.seq LIMIT", "ORDER BY r.created_at, r.seq LIMIT"},
		},
		test(storeTests, "TestTheCursorKeepsTheOrder", `read \[.*\], want .* first and .* last`),
	},
	{
		"settled-forgotten-early",
		"a settled event is forgotten while an older read can still show it", "S5",
		[]change{
			{coreTests + "/settle.go", "if len(c.reader.running) == 0 {", "if true {"},
		},
		seeds(some, "unexplained"),
	},
	{
		"no-barrier",
		"events are published that may not be durable", "A19",
		[]change{
			{
				coreTests + "/reader.go",
				"\tbegin(c, OpBarrier, &r.barrier,",
				"\tif incarnation == c.fence.incarnation {\n\t\trows := r.passing\n\t\tr.passing = nil\n\t\tfor _, row := range " +
					"rows {\n\t\t\tc.admit(now, row)\n\t\t}\n\t\treturn\n\t}\n\tbegin(c, OpBarrier, &r.barrier,",
			},
		},
		seeds(many, "phantom"),
	},
	{
		"barrier-not-flushed",
		"the barrier commits as the role says, which may be without the disk", "A19",
		[]change{
			{storeTests + "/sql/barrier.sql", "ELSE 'on' END", "ELSE current_setting('synchronous_commit') END"},
		},
		test(storeTests, "TestTheBarrierIsACommit", "the barrier left an asynchronous commit unflushed"),
	},
	{
		"warning-ignored",
		"a commit that did not wait for its standby counts as a barrier", "C5",
		[]change{
			{
				storeTests + "/configure.go",
				"if warning, ok := warnings[lastWarning].(*pgconn.Notice); ok {",
				"if warning, ok := warnings[lastWarning].(*pgconn.Notice); ok && false {",
			},
		},
		test(storeTests, "TestFaultC5AWarningIsNoBarrier", "a commit that waited for no standby counts: got <nil>"),
	},
	{
		"barrier-elsewhere",
		"a barrier of another server than the one that was read from counts", "A19",
		[]change{
			{storeTests + "/fence.go", `if incarnation != "" && incarnation != here {`, "if false {"},
		},
		test(storeTests, "TestTheBarrierIsOfOneServer", "the barrier of another server counts"),
	},
	{
		"last-gone-writer",
		"a read goes back to the last of the writers that have ended, and not to the first", "A15",
		[]change{{storeTests + "/sql/read.sql", "min(low) AS low", "max(low) AS low"}},
		test(storeTests, "TestTheReadDecidesWhoIsGone", `both gone, without \[order_paid\]: read \[9\]`),
	},
	{
		"unreached-lanes-go-on",
		"lanes that a read did not reach keep their cursor, though a writer has ended that it was for", "A15",
		[]change{{coreTests + "/reader.go", "if !covered[l] {", "if false {"}},
		test(coreTests, "TestALaneThatAReadDidNotReachGoesBack", "what the writer left was passed"),
	},
	{
		"answers-of-any-server", "an answer is used whichever server it is of", "C21",
		[]change{{coreTests + "/fence.go", "if c.fence.known && incarnation == c.fence.incarnation {", "if true {"}},
		test(coreTests, "TestAnswersOfAnotherServerAreNotUsed", "an event of another server was sent or died"),
	},
	{
		"writers-by-session", "an open writer is known by its session, which a prepared transaction leaves behind", "A15",
		[]change{{coreTests + "/fence.go", "if w.XID != 0 {", "if false {"}},
		test(coreTests, "TestAWriterIsKnownByItsTransaction", "the event of the open transaction is in state"),
	},
	{
		"recovery-overlooked", "a server that has recovered from the death of a backend is taken for the one before", "C21",
		[]change{{
			storeTests + "/sql/incarnation.sql",
			"(extract(epoch FROM pg_stat_get_bgwriter_stat_reset_time()) * 1000000)::bigint", "0",
		}},
		test(storeTests, "TestAnIncarnationEndsWithARecovery", "does not end with the time of the last recovery"),
	},
	{
		"sequence-behind-believed", "a server that has the table and not its sequence is relayed", "R14",
		[]change{{"relay/sequence.go", "case behind.last < behind.highest:", "case behind.last < 0:"}},
		test(relayTests, "TestAFenceComparesTheSequenceOnANewServer", "a fence with a sequence that is behind: <nil>"),
	},
	{
		"topics-met", "a topic gets its share only once this relay has met it", "L1",
		[]change{
			{coreTests + "/line.go", "if c.topics > 1 && rows > share", "if len(c.ordered) > 1 && rows > share"},
			{coreTests + "/route.go", "if c.topics > 1 {", "if len(c.ordered) > 1 {"},
		},
		test(coreTests, "TestATopicThatWasNotMetYet", "the event of the small topic waited for"),
	},
	{
		"rows-never-fewer", "after a read that failed a lane is asked for as many rows as before", "L1",
		[]change{{coreTests + "/apart.go", "l.lane.most = max(1, l.Limit/2)", "l.lane.most = max(1, l.Limit)"}},
		test(coreTests, "TestALaneOfLargeEventsBehindASlowLink", " of 400 large events are published after five minutes"),
	},
	{
		"swept-row-unread", "what a sweep finds of a topic with its own reader is left to the main read, which leaves it out",
		"L1",
		[]change{{coreTests + "/sweep.go", "at.from = min(at.from, from)", "_ = at"}},
		test(coreTests, "TestASweptEventOfAPausedTopic", "the event is in state 0 when its topic has come back"),
	},
	{
		"window-taken-for-the-end", "a read that ended with its window is taken for all there is", "S1",
		[]change{{coreTests + "/window.go", "read.top = top\n", "_ = top\n"}},
		test(coreTests, "TestReadsInWindows", "an event above many windows is in state 0"),
	},
	{
		"stray-published", "an event in another lane than its aggregate is published from there", "S4",
		[]change{{coreTests + "/line.go", "case r.Stray:", "case false:"}},
		test(coreTests, "TestAnEventInAnotherLane", "the event is in state 6"),
	},
	{
		"window-that-ends-nowhere", "a read looks at a window that its bounds can never leave", "L1",
		[]change{{
			coreTests + "/window.go", "if reach <= bound && bound+window < c.fence.last {",
			"if false && reach <= bound {",
		}},
		test(coreTests, "TestAWindowBehindADrawnNumber", "events wait for a transaction that has written nothing"),
	},
	{
		"old-numbers-unswept", "what is below a floor, and was swept once, is not looked at again", "S1",
		[]change{{coreTests + "/sweep.go", "add(l, from, min(from+sweepOld, l.swept))", "add(l, from, from)"}},
		test(coreTests, "TestASweepFindsAll", "no sweep has found the events"),
	},
}
