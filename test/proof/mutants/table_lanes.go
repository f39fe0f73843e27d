package mutants

// holdingLanes are about lanes: who holds one, for how long, and what an owner leaves to the next.
var holdingLanes = []mutant{
	{
		"acquire-held-lanes",
		"lanes are taken whether or not somebody holds them", "C1",
		[]change{
			{storeTests + "/sql/acquire.sql", "(l.lease_until IS NULL OR l.lease_until < clock_timestamp())", "true"},
		},
		sequences(20),
	},
	{
		"token-is-the-relay",
		"every acquisition of a relay has the same token, so an old settle fits the new tenure", "S6",
		[]change{
			{
				coreTests + "/members.go",
				"\tbegin(c, OpAcquire, &m.acquire,",
				"\ttake.Token = c.config.Relay\n\tbegin(c, OpAcquire, &m.acquire,",
			},
		},
		seeds(some, "unexplained"),
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
				"return !l.lost && now+c.config.Deadline+c.config.Margin < l.since+c.config.Lease",
				"return !l.lost",
			},
		},
		test(coreTests, "TestNoPublishAtTheEndOfALease", "1 lanes, 2 events were sent"),
	},
	{
		"renewal-unchecked",
		"a renewal is taken for done without a look at which lanes it has renewed", "C7",
		[]change{
			{coreTests + "/members.go", "case !slices.Contains(answer.Renewed, l.number):", "case false:"},
		},
		seeds(some, "overlaps"),
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
		sequences(20),
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
		"a renewal can lower the floor", "C16",
		[]change{
			{storeTests + "/sql/renew.sql", "greatest(l.floor, own.floor)", "own.floor"},
		},
		test(storeTests, "TestHeartbeat", `lanes, floors and crashes .*\(4,9,0\)`),
	},
	{
		"note-without-token",
		"a crash counts against the noted event whoever has noted it", "C17",
		[]change{
			{storeTests + "/sql/acquire.sql", "WHEN l.marked_by = l.token", "WHEN true"},
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
		"lease-from-the-answer", "a lease is counted from the answer to its renewal, and not from before it was sent", "C6",
		[]change{{
			coreTests + "/members.go",
			"c.renewed(now, l, beat.Lanes[i], ", "c.renewed(told, l, beat.Lanes[i], ",
		}},
		test(coreTests, "TestALeaseBeginsBeforeItsRenewalIsSent", "2 events were sent: one was sent at the end of its lease"),
	},
}
