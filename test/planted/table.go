package planted

import bugs "github.com/posthaste-dev/posthaste/internal/planted"

// The folders of the tests that the table names.
const (
	relayTests  = "relay"
	coreTests   = "relay/internal/core"
	storeTests  = "relay/internal/pgstore"
	fleetTests  = "test/relay"
	emitTests   = "test/emit"
	natsTests   = "test/broker/natsjetstream"
	pubsubTests = "test/broker/googlepubsub"
	inboxTests  = "test/inbox"
	guardTests  = "test/redisinbox"
	keyTests    = "inbox/redisinbox"
)

// The numbers of simulated worlds: at least three times as many as were ever needed for what uses them.
const (
	few  = 30
	some = 100
	many = 200
)

// table says which is the cheapest proof that finds a mistake.
func table() map[bugs.Bug]proof {
	return map[bugs.Bug]proof{
		bugs.PayloadThroughJSONB: test(emitTests, "TestThePayloadIsStoredByteForByte", `{"b":1,"a":2} is stored in {"data": {"a": 2, "b": 1}`),
		bugs.DedupeWithoutTenant: test(emitTests, "TestDedupe", "the same key of a tenant: want a new event"),
		bugs.MismatchSwallowed:   test(emitTests, "TestFaultA4SameKeyOtherPayload", "another payload: want ErrDedupeMismatch, got .*, <nil>"),
		bugs.SequenceCache:       test(emitTests, "TestFaultA16SequenceCache", "the migration made a sequence with CACHE 20"),

		bugs.AcquireHeldLanes:    sequences(20),
		bugs.TokenIsTheRelay:     seeds(some, "unexplained"),
		bugs.LeaseByWallClock:    test(relayTests, "TestTheClockNeverGoesBack", "passed in the second in which the clock was set back"),
		bugs.LeaseNotLookedAt:    test(coreTests, "TestNoPublishAtTheEndOfALease", "1 lanes, 2 events were sent"),
		bugs.RenewalUnchecked:    seeds(some, "overlaps"),
		bugs.GivenBackInFlight:   seeds(some, "unexplained"),
		bugs.ReleaseWithoutToken: sequences(20),
		bugs.HeldNotReadFirst:    seeds(few, "order"),
		bugs.FloorTooHigh:        seeds(some, "order"),
		bugs.FloorFalls:          test(storeTests, "TestHeartbeat", `lanes, floors and crashes .*\(4,9,0\)`),
		bugs.QuarantinedAtOnce:   test(coreTests, "TestAnEventThatKills", "sent 0 times, and the event is in state 4"),
		bugs.NoteWithoutToken:    test(storeTests, "TestNote", "taken: .*NotedCount:3"),

		bugs.IsCalledIgnored:        test(storeTests, "TestFenceSeesEveryWriter", "a fresh outbox has {Last:1 "),
		bugs.WritersListedFirst:     test(storeTests, "TestTheFenceListsWritersAfterItsNumber", `Writers:\[\]}, <nil>, and .* has drawn the numbers up to 2`),
		bugs.GoneWritersIgnored:     seeds(few, "order"),
		bugs.StandbyIgnored:         test(coreTests, "TestNothingIsReadFromAStandby", " reads, .* before, 0 alarms"),
		bugs.RestartIgnored:         test(coreTests, "TestAnotherServer", "lane 0 is held as before"),
		bugs.CursorWithoutWatermark: seeds(few, "order"),
		bugs.CutTakenForComplete:    seeds(few, "stuck"),
		bugs.OldAnswerBelieved:      test(coreTests, "TestFloorOfADrainedLane", "given back with floor 2, and event 2 is ready below it"),
		bugs.ForgottenNotReadAgain:  seeds(some, "order"),
		bugs.ReadByCreatedAt:        test(storeTests, "TestTheCursorKeepsTheOrder", `read \[.*\], want .* first and .* last`),
		bugs.SettledForgottenEarly:  seeds(some, "unexplained"),
		bugs.NoBarrier:              seeds(many, "phantom"),
		bugs.WarningIgnored:         test(storeTests, "TestFaultC5AWarningIsNoBarrier", "a commit that waited for no standby counts: got <nil>"),
		bugs.BarrierElsewhere:       test(storeTests, "TestTheBarrierIsOfOneServer", "the barrier of another server counts"),
		bugs.BarrierNotFlushed:      test(storeTests, "TestTheBarrierIsACommit", "the barrier left an asynchronous commit unflushed"),

		bugs.StaleDecisionSent:     test(relayTests, "TestWhatWasDecidedTooLongAgoIsNotSent", "too late: .* sent 2 times"),
		bugs.NoPublishDeadline:     test(fleetTests, "TestNoPublishOutlivesItsLease", "a publish without a deadline"),
		bugs.SettleBeforeAck:       test(fleetTests, "TestPublishedAtOnlyAfterTheAcknowledgement", "in flight, and already "),
		bugs.PublishedOnTimeout:    test(relayTests, "TestWhoseFaultAnErrorIs", "deadline: {Class:0 "),
		bugs.PipelinePassesRefused: test(relayTests, "TestNothingPassesAnEventThatWasNotSent", "behind the head: class 0"),
		bugs.RedeliveryUnmarked:    test(fleetTests, "TestASecondDeliveryIsMarkedAsSuch", "1 of 1 second deliveries are not marked"),
		bugs.TwoInFlight:           seeds(few, "overlaps"),
		bugs.ResumeTooEarly:        test(pubsubTests, "TestFailureInTheMiddle", `problems:\n *strange: `),

		bugs.ErrorUnsanitised:   test(relayTests, "TestEveryErrorIsCleaned", `relay.RouteError: "route: no\\x00pe`),
		bugs.OutageCharged:      seeds(few, "wrong_charges"),
		bugs.ChargeForgotten:    seeds(few, "problems"),
		bugs.BadDeployKills:     test(fleetTests, "TestATypeWhoseContractBreaksIsParkedAndNotKilled", "of [0-9]+ events died of the bad deploy"),
		bugs.UnknownCharged:     seeds(some, "wrong_charges"),
		bugs.BackoffOverflows:   test(coreTests, "TestTheDelayDoublesUpToItsLimit", `grow\(.*\) = 0, want [1-9]`),
		bugs.PassesFailingHead:  seeds(few, "order"),
		bugs.BlockTreatedAsSkip: seeds(few, "problems"),
		bugs.DeadTooEarly:       test(coreTests, "TestNothingDiesRightAfterATakeOver", "is in state 5 before the deadline"),
		bugs.DeathNotAwaited:    seeds(some, "order"),
		bugs.UnknownTypePassed:  seeds(some, "order"),
		bugs.UnknownTypeDies:    seeds(few, "problems"),
		bugs.RetryAfterIgnored:  test(coreTests, "TestATopicIsLeftAlone", "sent [0-9]+ times in the first minute"),
		bugs.NoRamp:             test(coreTests, "TestATopicComesBackByAndBy", "[0-9]+ probes at once"),
		bugs.BreakerNeverProbes: seeds(few, "stuck"),

		bugs.PauseForgottenAtStart: test(coreTests, "TestAPauseIsKnownBeforeTheFirstPublish", "[0-9]+ events were sent in spite of the pause"),
		bugs.PausedTopicProbed:     test(coreTests, "TestAPausedTopicIsLeftAlone", "[0-9]+ events were sent, want 10 of each topic"),
		bugs.PausedTypePassed:      test(coreTests, "TestNothingPassesAPausedType", `_test.go:[0-9]+: \[.*\] were sent, want `),
		bugs.ResumeSkipsWaiting:    test(coreTests, "TestNothingPassesAPausedType", `after the resume \[\] were sent`),

		bugs.SettleWithoutToken:     sequences(20),
		bugs.SettleWithoutLock:      test(storeTests, "TestASettleKeepsItsLane", "took [0-9]+ lanes beside the settle, want all but its own"),
		bugs.PartialSettleForgotten: test(coreTests, "TestSettleOfALaneThatIsLost", "the event of the lane that is held is in state 0"),
		bugs.DeadLetterApart:        test(storeTests, "TestFaultD2", `changed to\n`),
		bugs.ActionDoneTwice:        test(relayTests, "TestAnActionIsDoneOnce", `violates unique constraint "outbox_actions_once"`),
		bugs.RedriveOfPublished:     test(relayTests, "TestEveryVerbFromEveryState", `violates check constraint "outbox_events_state"`),

		bugs.FirstByLooking:      test(inboxTests, "TestFaultI3TheSecondWaits", "commit, READ COMMITTED: got true, <nil>, want false"),
		bugs.OlderIsNewer:        test(inboxTests, "TestFaultI11OutOfOrder", "[1-9][0-9]* times backwards"),
		bugs.MarkedBeforeEffect:  test(guardTests, "TestKilledConsumersOfDo", "the effect happened 0 times, want 1"),
		bugs.HeldTakenForHandled: test(guardTests, "TestACopyOfAHeldEventIsDelayed", "got <nil>, want that another delivery is being handled"),
		bugs.FinishWithoutToken:  test(guardTests, "TestAFinishTellsThatTheHoldWasLost", "got <nil>, want that the hold was lost"),
		bugs.FreedWithoutToken:   test(guardTests, "TestAFailureRemovesOnlyItsOwnMark", `done:another was replaced by ""`),
		bugs.HoldNotExtended:     test(guardTests, "TestAHoldIsExtendedWhileTheHandlerRuns", "the hold was not extended"),
		bugs.MarksWithoutTenant:  test(keyTests, "TestKeysAreInjective", "is the key of {.*} and of {"),
	}
}
