package mutants

// failing are about whose fault a failure is, and topics that are paused.
var failing = []mutant{
	{
		"error-unsanitised",
		"the broker's error is stored as it is", "S-4",
		[]change{
			{"internal/clean/clean.go", "return Text(textOf(err))", "return textOf(err)"},
		},
		test(relayTests, "TestEveryErrorIsCleaned", `publish.TopicError: "topic: no\\x00pe`),
	},
	{
		"outage-charged",
		"a route's failure is charged to the event", "P8",
		[]change{
			{
				coreTests + "/blame.go",
				"\tcase RouteFault:\n\t\tif l.route.carriedAfter(r) {\n",
				"\tcase RouteFault:\n\t\tif true {\n\t\t\tc.charge(now, l, r)\n\t\t\treturn\n\t\t}\n\t\tif " +
					"l.route.carriedAfter(r) {\n",
			},
		},
		seeds(few, "wrong_charges"),
	},
	{
		"rejections-charged",
		"a topic that refuses every message is not seen as that, and the head of each aggregate dies", "P8",
		[]change{{coreTests + "/route.go", "return len(r.rejected) >= manyRejected }", "return false }"}},
		test(coreTests, "TestATopicThatRefusesManyPausesAndChargesNobody", `events were charged, \d+ are dead`),
	},
	{
		"charge-forgotten",
		"an attempt that is charged is not counted, so an event is tried forever", "S9",
		[]change{
			{
				coreTests + "/blame.go",
				"\tattempts := oneMore(r.Attempts)\n\tif int(attempts) >= limit {",
				"\tattempts := r.Attempts\n\tif int(attempts) >= limit {",
			},
		},
		seeds(few, "problems"),
	},
	{
		"bad-deploy-kills",
		"a type most of whose events break their contract is not paused, and all of them die", "V4",
		[]change{
			{coreTests + "/broken.go", "most := health.broken >= enoughBroken\n", "most := false\n"},
		},
		test(fleetTests, "TestATypeWhoseContractBreaksIsParkedAndNotKilled", "of [0-9]+ events died of the bad deploy"),
	},
	{
		"unknown-charged",
		"an unknown outcome is charged whether or not the route works", "P2",
		[]change{
			{coreTests + "/blame.go", "if l.route.carriedAfter(r) && !l.route.failing(r) {", "if true {"},
		},
		seeds(some, "wrong_charges"),
	},
	{
		"backoff-overflows",
		"the delay doubles until it overflows", "S-5",
		[]change{
			{
				coreTests + "/core.go",
				"\tdelay := base\n",
				"\tif limit > 0 {\n\t\treturn min(base<<max(failures-1, 0), limit)\n\t}\n\tdelay := base\n",
			},
		},
		test(coreTests, "TestTheDelayDoublesUpToItsLimit", `grow\(.*\) = 0, want [1-9]`),
	},
	{
		"passes-failing-head",
		"events that come behind a retry are published before it", "S-7",
		[]change{
			{coreTests + "/line.go", "case c.isHeld(r.lane, key):", "case false:"},
		},
		seeds(few, "order"),
	},
	{
		"block-treated-as-skip",
		"events behind a dead one go on, whatever its contract says", "S-8",
		[]change{
			{coreTests + "/blame.go", "if route.Block {", "if false {"},
		},
		seeds(few, "problems"),
	},
	{
		"dead-too-early",
		"a new owner declares an event dead that the old one may have in flight", "S7",
		[]change{
			{coreTests + "/care.go", "if !l.crashed {\n\t\treturn 0", "if true {\n\t\treturn 0"},
		},
		test(coreTests, "TestNothingDiesRightAfterATakeOver", "is in state 5 before the deadline"),
	},
	{
		"death-not-awaited",
		"under skip, the next events go before the death is written down", "S4",
		[]change{
			{
				coreTests + "/blame.go",
				"\tc.hold(r.lane, key, 0)\n\tc.decide(how)",
				"\tif how.state != Dead {\n\t\tc.hold(r.lane, key, 0)\n\t}\n\tc.decide(how)",
			},
		},
		seeds(some, "order"),
	},
	{
		"unknown-type-dies",
		"an event of an unknown type is dead at once", "V1",
		[]change{
			{coreTests + "/blame.go", "if c.config.UnknownTypeMaxAge < 0 && !c.spared(r.Type) {", "if true {"},
		},
		seeds(few, "problems"),
	},
	{
		"unknown-type-passed",
		"events pass one of their aggregate whose topic nobody knows", "V1",
		[]change{
			{
				coreTests + "/hold.go",
				"l.holds[unknown] != nil || c.isBlocked(l, key) || c.isBlocked(l, unknown)\n",
				"unknown.topic != \"\" || c.isBlocked(l, key)\n",
			},
		},
		seeds(some, "order"),
	},
	{
		"breaker-never-probes",
		"a paused route is never tried again", "L1",
		[]change{
			{coreTests + "/route.go", "\t\tif !r.paused {\n\t\t\tcontinue\n", "\t\tif true {\n\t\t\tcontinue\n"},
		},
		seeds(few, "stuck"),
	},
	{
		"retry-after-ignored",
		"a broker that asks to be left alone is not", "P13",
		[]change{
			{
				coreTests + "/route.go",
				"r.retryAt = now + max(c.jitter(grow(firstProbeAfter, r.pauses, longestPause)), why.RetryAfter)",
				"r.retryAt = now + c.jitter(grow(firstProbeAfter, r.pauses, longestPause))",
			},
		},
		test(coreTests, "TestATopicIsLeftAlone", "sent [0-9]+ times in the first minute"),
	},
	{
		"no-ramp",
		"a route that comes back gets everything at once", "S-6",
		[]change{
			{
				coreTests + "/route.go",
				"r.probing, r.allowance = true, 1\n",
				"r.probing, r.allowance = true, c.config.Concurrency\n",
			},
		},
		test(coreTests, "TestATopicComesBackByAndBy", "[0-9]+ probes at once"),
	},
	{
		"pause-forgotten-at-start",
		"a relay that starts goes by a standing pause only from its second heartbeat on", "V4",
		[]change{
			{
				coreTests + "/pause.go",
				"\tbefore := c.pauses\n",
				"\tif len(c.members.view.Relays) == 0 {\n\t\tpauses = nil\n\t}\n\tbefore := c.pauses\n",
			},
		},
		test(coreTests, "TestAPauseIsKnownBeforeTheFirstPublish", "[0-9]+ events were sent in spite of the pause"),
	},
	{
		"paused-topic-probed",
		"a topic that an operator has paused is probed as if it had failed", "V4",
		[]change{
			{
				coreTests + "/pause.go",
				"r.paused, r.retryAt = true, never\n",
				"r.paused, r.retryAt = true, now+longestPause\n",
			},
		},
		test(coreTests, "TestAPausedTopicIsLeftAlone", "[0-9]+ events were sent, want 10 of each topic"),
	},
	{
		"paused-type-passed",
		"events pass one of their aggregate and topic whose type is paused", "S4",
		[]change{
			{coreTests + "/line.go", "case c.pausedType(r.Type):", "case false:"},
			{
				coreTests + "/pause.go",
				"\tc.hold(l.rows[l.inFlight].lane, l.key, never)\n\tc.waitBehind(l)\n",
				"\tc.waitBehind(l)\n",
			},
		},
		test(coreTests, "TestNothingPassesAPausedType", `_test.go:[0-9]+: \[.*\] were sent, want `),
	},
	{
		"resume-skips-waiting",
		"what waits is not looked at when its type is resumed", "L1",
		[]change{
			{coreTests + "/pause.go", "if pause.Scope == ScopeType && !c.pausedType(pause.Name) {", "if false {"},
		},
		test(coreTests, "TestNothingPassesAPausedType", `after the resume \[\] were sent`),
	},
}
