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
			"outcome.Class == Rejected && !ofTopic && r.failures",
			"outcome.Class == Rejected && (ofTopic || !ofTopic) && r.failures",
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
		"first-lane-gets-all",
		"with a low limit the copies of the first lane go out, and those of the others when it is empty", "OP-5",
		[]change{{coreTests + "/take.go", "\t\twith[i], with[j] = with[j], with[i]\n", "\t\t_ = j\n"}},
		test(coreTests, "TestLanesTakeTurnsAtALowLimit", `copies by lane`),
	},
	{
		"waiting-copies-hold-up-others",
		"copies to a limited topic hold up those to every other topic in their lane until they are sent", "OP-5",
		[]change{{coreTests + "/take.go", "l.requests > 0 && (crowded ||", "l.requests > 0 && (!crowded ||"}},
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
		[]change{{coreTests + "/take.go", "crowded || l.survived > 0", "crowded"}},
		test(coreTests, "TestNothingIsTakenBesideWhatRelaysMayDieOf", `the copy that waited is`),
	},
}
