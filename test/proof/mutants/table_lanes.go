package mutants

// holdingLanes are about lanes: who holds one, for how long, and what an owner leaves to the next.
var holdingLanes = []mutant{
	{
		"acquire-held-lanes",
		"lanes are taken whether or not somebody holds them", "C1",
		[]change{
			{storeTests + "/sql/acquire.sql", "l.owner IS NULL", "true"},
		},
		sequences(20),
	},
	{
		"acquired-by-the-dead",
		"a relay that was ended takes lanes", "S6",
		[]change{
			{storeTests + "/sql/acquire.sql", "r.token = $4::uuid AND r.ended_at IS NULL)", "r.token = $4::uuid)"},
		},
		test(storeTests, "TestAcquire", "an ended relay took .{Lane:30 "),
	},
	{
		"token-is-the-relay",
		"every acquisition of a relay has the same token, so an old release fits the new tenure", "S6",
		[]change{
			{
				coreTests + "/members.go",
				"\tbegin(c, OpAcquire, &m.acquire,",
				"\ttake.Tenure = m.owner.Token\n\tbegin(c, OpAcquire, &m.acquire,",
			},
		},
		seeds(some, "malformed"),
	},
	{
		"lease-by-wall-clock",
		"the relay measures its lease by the wall clock, which can be set back", "C8",
		[]change{
			{
				"relay/run.go",
				"passed := max(0, t.Sub(c.last), t.Round(0).Sub(c.last.Round(0)))",
				"passed := t.Round(0).Sub(c.last.Round(0))",
			},
		},
		test(relayTests, "TestTheClockNeverGoesBack", "passed in the second in which the clock was set back"),
	},
	{
		"lease-not-looked-at",
		"a publish begins however little is left of the lease", "C6",
		[]change{
			{
				coreTests + "/lanes.go",
				"return !l.lost && m.server == l.server && now+c.config.Deadline+c.config.Margin < m.since+c.config.Lease",
				"return !l.lost && m.server == l.server",
			},
		},
		test(coreTests, "TestNoPublishAtTheEndOfALease", "1 lanes, 2 events were sent"),
	},
	{
		"ended-unnoticed",
		"a beat is taken for done without a look at whether the relay was ended, and which lanes it has", "C7",
		[]change{
			{coreTests + "/members.go", "case answer.Ended:", "case false:"},
			{coreTests + "/members.go", "&& !slices.Contains(answer.Held, l.number) {", "&& false {"},
		},
		seeds(some, "overlaps"),
	},
	{
		"beat-without-lock",
		"a beat that meets the end of its relay does not wait, and the relay is told that it lives", "C1",
		[]change{
			{
				storeTests + "/sql/beat.sql", "r.ended_at IS NULL FOR KEY SHARE\n",
				"r.ended_at IS NULL\n), locked AS (SELECT FROM {schema}.outbox_relays r WHERE false FOR KEY SHARE\n",
			},
		},
		test(storeTests, "TestABeatBehindATaker", "ended: the relay is told that it lives: true, want false"),
	},
	{
		"ended-at-first-sight",
		"a relay is ended without a look at its newest beat behind the lock", "C1",
		[]change{
			{"schema/outbox/00003_lanes.sql", "CONTINUE WHEN newest.until >= clock_timestamp();", ""},
		},
		test(storeTests, "TestABeatBehindATaker", "found alive: the relay is told that it lives: false, want true"),
	},
	{
		"ended-beside-its-settle",
		"whoever ends a relay does not wait for its settles", "S6",
		[]change{
			{
				"schema/outbox/00003_lanes.sql", "r.id = candidate AND r.ended_at IS NULL FOR UPDATE SKIP LOCKED",
				"r.id = candidate AND r.ended_at IS NULL FOR NO KEY UPDATE SKIP LOCKED",
			},
		},
		test(storeTests, "TestASettleKeepsItsLane", "beside the settle, want all but its own"),
	},
	{
		"given-back-in-flight",
		"a lane is given back while something of it is in flight", "C18",
		[]change{
			{coreTests + "/members.go", "if l.draining && l.inFlight == 0 && l.unwritten == 0 {", "if l.draining {"},
		},
		seeds(some, "unexplained"),
	},
	{
		"release-without-token",
		"a lane is given back by a relay that has lost it", "S6",
		[]change{
			{storeTests + "/sql/release.sql", "ON l.lane = t.lane AND l.token = t.token", "ON l.lane = t.lane"},
		},
		sequences(60),
	},
	{
		"held-not-read-first",
		"a new owner reads what is ready without knowing what is held", "S4",
		[]change{
			{coreTests + "/lanes.go", "keys := answer.Keys\n", "keys := answer.Keys[:0]\n"},
		},
		seeds(few, "order"),
	},
	{
		"floor-too-high",
		"the floor that is written down passes events that are read and not settled", "S1",
		[]change{
			{
				coreTests + "/lanes.go", "if !r.held && !r.done {\n\t\t\treached",
				"if !r.held && !r.done && false {\n\t\t\treached",
			},
		},
		seeds(some, "order"),
	},
	{
		"floor-falls",
		"what a dead relay said last can lower a floor", "C16",
		[]change{
			{
				"schema/outbox/00003_lanes.sql", "floor = greatest(l.floor, said.floor)",
				"floor = coalesce(said.floor, l.floor)",
			},
		},
		test(storeTests, "TestHeartbeat", `ended: lanes, floors and crashes .*\(4,9,1,`),
	},
	{
		"floor-of-any-server",
		"a beat writes down floors on a server that they are not about", "C21",
		[]change{
			{storeTests + "/sql/beat.sql", "$10::text IN ('', {incarnation})", "$10::text IS NOT NULL"},
		},
		test(storeTests, "TestAFloorBelongsToItsServer", "beaten: held .*, the floor is 6, want"),
	},
	{
		"note-without-token",
		"a crash counts against the noted event whoever has noted it", "C17",
		[]change{
			{"schema/outbox/00003_lanes.sql", "WHEN m.token = l.token THEN m.deaths + 1", "WHEN true THEN m.deaths + 1"},
		},
		test(storeTests, "TestNote", "taken: .*NotedCount:3"),
	},
	{
		"quarantined-at-once",
		"an event is quarantined after the first crash that it was noted in", "C17",
		[]change{
			{coreTests + "/lanes.go", "if a.NotedCount >= crashesToQuarantine {", "if a.NotedCount > 0 {"},
		},
		test(coreTests, "TestAnEventThatKills", "sent 0 times, and the event is in state 4"),
	},
	{
		"lease-from-the-answer", "a lease is counted from the answer to a beat, and not from before it was sent", "C6",
		[]change{{
			coreTests + "/members.go",
			"c.looked(now, told, &beat, lanes, &answer)", "c.looked(told, told, &beat, lanes, &answer)",
		}},
		test(coreTests, "TestALeaseBeginsBeforeItsRenewalIsSent", "2 events were sent: one was sent at the end of its lease"),
	},
}
