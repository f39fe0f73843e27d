package mutants

// redelivery are about published events that somebody wants delivered again.
var redelivery = []mutant{
	{
		"copy-before-a-failure-is-written",
		"the copies behind one that failed go before that is written down: after a crash it comes behind them", "OP-5",
		[]change{{
			coreTests + "/redeliver.go",
			"if r.line != nil && end == RequestFailed {",
			"if r.line != nil && end == RequestFailed && false {",
		}},
		test(coreTests, "TestACopyThatFailsHoldsTheOthersUntilThatIsWrittenDown", `that a1 failed is not written down`),
	},
	{
		"copy-beside-its-aggregate",
		"an event is sent beside a copy of its aggregate: the failure of the one is taken for one of the other", "OP-5",
		[]change{{coreTests + "/publish.go", "\tcase c.awaitCopy(l):\n", ""}},
		test(coreTests, "TestEventsWaitForNoMoreThanACopyInFlight", `an event was sent beside a copy`),
	},
	{
		"outage-fails-requests",
		"a topic that rejects everything for an hour fails every request of that hour", "OP-5",
		[]change{{
			coreTests + "/redeliver.go",
			"!ofTopic && outcome.Class.isCharged()",
			"(ofTopic || !ofTopic) && outcome.Class.isCharged()",
		}},
		test(coreTests, "TestATopicThatIsDownFailsNoRequest", `while it is down the requests are`),
	},
	{
		"requests-kept-at-a-stop",
		"a relay that stops leaves requests as taken, and they are suspected of killing relays", "OP-5",
		[]change{{coreTests + "/lanes.go", "\tc.drainRequests(l)\n", ""}},
		test(coreTests, "TestRequestsAreGivenBackAtAStop", `is in somebody's hands|it does not stop`),
	},
	{
		"copy-that-kills-for-ever",
		"a copy that kills whoever sends it is sent by every relay, for ever", "OP-5",
		[]change{{coreTests + "/take.go", "case r.Taken > takesOfARequest:", "case r.Taken > 100*takesOfARequest:"}},
		test(coreTests, "TestWhatKillsRelaysAsACopyFails", `after \d+ kills the requests are`),
	},
	{
		"requests-asked-for-always",
		"every relay asks for requests every second, where nobody ever made one", "OP-5",
		[]change{{coreTests + "/take.go", "if !d.requested || c.stopping", "if c.stopping"}},
		test(coreTests, "TestNobodyAsksWhereNothingIsRequested", `asked \d+ times`),
	},
	{
		"mistyped-topic-kept",
		"a replay to a topic that does not exist leaves it as a failing topic, after it was canceled", "OP-5",
		[]change{{coreTests + "/members.go", "\tc.forgetTopics()\n", ""}},
		test(coreTests, "TestATopicOfCopiesIsForgotten", `the topics are`),
	},
	{
		"cancel-waits-for-a-limit",
		"whoever cancels copies for a limited topic waits until the limit has let them go", "OP-5",
		[]change{{coreTests + "/redeliver.go", "\tc.returnOld(now)\n", ""}},
		test(coreTests, "TestACancelDoesNotWaitForALimit", `something is open still`),
	},
	{
		"cancel-waits-for-a-lost-answer",
		"copies that a relay took without learning of it are in its hands for as long as their topic is paused", "OP-5",
		[]change{{
			coreTests + "/take.go", "for i := range answer.Forgotten {", "for i := range answer.Forgotten[:0] {",
		}},
		test(coreTests, "TestACancelDoesNotWaitForATakeWithoutAnswer", `something is open still`),
	},
	{
		"lost-answer-while-all-is-paused",
		"what a take without an answer took is looked for where copies may go, and not while everything is paused", "OP-5",
		[]change{{coreTests + "/take.go", "if !may && now >= d.doubtful && now < d.lookAt {", "if !may {"}},
		test(coreTests, "TestACancelDoesNotWaitForATakeWithoutAnswer", `something is open still`),
	},
	{
		"lost-answer-found-within-a-lease-alone",
		"what a take took that was done late is looked for until a lease has passed, and then not before the resume",
		"OP-5",
		[]change{{
			coreTests + "/take.go",
			"if !may && now >= d.doubtful && now < d.lookAt {\n\t\tc.wakeAt(d.lookAt)\n",
			"if !may && now >= d.doubtful {\n",
		}},
		test(coreTests, "TestATakeThatIsDoneVeryLateIsFound", `are in hands`),
	},
	{
		"care-for-an-empty-lane",
		"a lane in which relays died is taken care of although nothing is in it, and its copies wait for as long as it " +
			"changes hands",
		"OP-5",
		[]change{{
			coreTests + "/care.go", "reached >= c.fence.last && len(l.holds)+len(l.rows) == 0",
			"false",
		}},
		test(coreTests, "TestCopiesOfALaneWithoutEventsDoNotWait", `the requests are`),
	},
	{
		"late-give-back",
		"a settle that gives copies back and is done late takes them from whoever sends them: a cancel says that no copy " +
			"is sent any more, and some are",
		"OP-5",
		[]change{{
			"relay/internal/pgstore/sql/settle_requests.sql", "(a.state <> 0 OR r.xmin::text::bigint = a.version)", "true",
		}},
		test("./relay/internal/pgstore", "TestAGiveBackThatIsDoneLateDoesNothing", `of 2 are in hands`),
	},
	{
		"copies-in-flight-given-back",
		"a take gives back what the relay has in memory: a cancel says that no copy is sent any more, and one is", "OP-5",
		[]change{{
			coreTests + "/take.go",
			"take.InMemory = slices.AppendSeq(take.InMemory, maps.Keys(l.requests))",
			"_ = maps.Keys(l.requests)",
		}},
		test(coreTests, "TestWhatIsInMemoryStaysInHands", `of \d+ copies that the relay has \d+ are in hands`),
	},
	{
		"taken-and-forgotten-at-once",
		"what a take takes anew is told as forgotten as well, and given back while it is sent", "OP-5",
		[]change{{
			"relay/internal/pgstore/sql/take_requests.sql", "AND k.id NOT IN (SELECT l.id FROM locked l)", "",
		}},
		test("./relay/internal/pgstore", "TestWhatARelayDoesNotKnowToHaveIsTold", `beside what is taken again: it has`),
	},
	{
		"first-lane-gets-all",
		"with a low limit the copies of the first lane go out, and those of the others when it is empty", "OP-5",
		[]change{{coreTests + "/take.go", "\t\twith[i], with[j] = with[j], with[i]\n", "\t\t_ = j\n"}},
		test(coreTests, "TestLanesTakeTurnsAtALowLimit", `copies by lane`),
	},
	{
		"waiting-copies-hold-up-others",
		"copies to a limited topic hold up those to every other topic in their lane until they are sent", "OP-5",
		[]change{{coreTests + "/take.go", "(l.requests) > 0 && (crowded ||", "(l.requests) > 0 && (!crowded ||"}},
		test(coreTests, "TestCopiesThatWaitHoldUpNoOtherTopic", `of the copies to the other topic \d+ are open`),
	},
	{
		"copies-overtake-those-in-memory",
		"copies are taken while others for their topic wait in memory, and overtake these where they are given back", "OP-5",
		[]change{{coreTests + "/take.go", "\t\t\ttake.Busy = append(take.Busy, l.busyTopics(now)...)\n", ""}},
		test(coreTests, "TestTheOrderHoldsWhereOthersWait", `of . were sent`),
	},
	{
		"copies-blamed-for-others-deaths",
		"copies that wait while relays die of others are counted as taken each time, until they fail", "OP-5",
		[]change{ // either keeps the others from six takes
			{coreTests + "/take.go", "crowded || l.survived > 0", "crowded"},
			{coreTests + "/take.go", "return l.suspects > 0 }", "return false && l.suspects > 0 }"},
		},
		test(coreTests, "TestNothingIsTakenBesideWhatRelaysMayDieOf", `the copy that waited is`),
	},
	{
		"copies-beside-what-relays-died-of",
		"copies of other lanes are taken beside one that killed relays, and counted as what they died of", "OP-5",
		[]change{{coreTests + "/take.go", "return l.suspects > 0 }", "return false && l.suspects > 0 }"}},
		test(coreTests, "TestNothingIsTakenBesideACopyThatMayKill", `while it is in flight the requests are`),
	},
	{
		"suspects-of-each-lane",
		"each lane has its own copy taken alone, and all of them are counted when one kills the relay", "OP-5",
		[]change{{
			"relay/internal/pgstore/sql/take_requests.sql",
			"THEN a.id = (SELECT o.id FROM alone o)", "THEN a.place = 1",
		}},
		test("./relay/internal/pgstore", "TestNothingOfOtherLanesGoesBesideIt", `of two in two lanes took 2`),
	},
	{
		"bad-deploy-fails-a-replay",
		"a registry that breaks the contract of a type fails every copy of it within seconds", "OP-5",
		[]change{{coreTests + "/redeliver.go", "case c.copyBreaksLikeMost(now, r, outcome):", "case false:"}},
		test(coreTests, "TestCopiesThatBreakTheirContractWait", `the requests are`),
	},
	{
		"attempts-lost-when-given-back",
		"a copy whose outcome is never known begins anew whenever it is given back, and its job never ends", "OP-5",
		[]change{{coreTests + "/take.go", "charged: int(r.Attempts)})", "charged: 0 * int(r.Attempts)})"}},
		test(coreTests, "TestACopyWhoseOutcomeIsNeverKnownFails", `it is \{ID:1`),
	},
	{
		"part-due-at-once",
		"the second part of a redelivery is due beside the first: twice the rate, and later events before earlier ones",
		"OP-5",
		[]change{{"schema/outbox/00009_redelivery.sql", "begins + coalesce(c.place", "clock_timestamp() + coalesce(c.place"}},
		test("./relay/operator", "TestAPartIsDueBehindThePartBefore", `due after`),
	},
	{
		"released-for-ever",
		"what is released while its type breaks the contract is retried for ever, and seen by nobody", "V4",
		[]change{{
			coreTests + "/blame.go",
			"c.decide(fate{row: r, key: key, state: Parked, detail: detail})\n\tif",
			"how := fate{row: r, key: key, state: Parked, detail: detail}\n\tif r.State == Retrying {\n\t\t" +
				"how.state, how.delay = Retrying, c.config.MaxDelay\n\t}\n\tc.decide(how)\n\tif",
		}},
		test(coreTests, "TestWhatIsReleasedAndBreaksItsContractIsParkedAgain", `it is in state`),
	},
}
