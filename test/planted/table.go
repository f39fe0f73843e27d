package planted

import bugs "github.com/posthaste-dev/posthaste/internal/planted"

// The folders of the tests that the table names.
const (
	relayTests  = "relay"
	coreTests   = "relay/internal/core"
	storeTests  = "relay/internal/pgstore"
	fleetTests  = "test/relay"
	emitTests   = "test/emit"
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
		bugs.PayloadThroughJSONB: test(emitTests, "TestThePayloadIsStoredByteForByte"),
		bugs.DedupeWithoutTenant: test(emitTests, "TestDedupe"),
		bugs.MismatchSwallowed:   test(emitTests, "TestFaultA4SameKeyOtherPayload"),
		bugs.SequenceCache:       test(emitTests, "TestFaultA16SequenceCache"),

		bugs.AcquireHeldLanes:    sequences(20),
		bugs.TokenIsTheRelay:     seeds(some, "unexplained"),
		bugs.LeaseByWallClock:    test(relayTests, "TestTheClockNeverGoesBack"),
		bugs.LeaseNotLookedAt:    test(coreTests, "TestNoPublishAtTheEndOfALease"),
		bugs.RenewalUnchecked:    seeds(some, "overlaps"),
		bugs.GivenBackInFlight:   seeds(some, "unexplained"),
		bugs.ReleaseWithoutToken: sequences(20),
		bugs.HeldNotReadFirst:    seeds(few, "order"),
		bugs.FloorTooHigh:        seeds(some, "order"),
		bugs.FloorFalls:          test(storeTests, "TestHeartbeat"),
		bugs.QuarantinedAtOnce:   test(coreTests, "TestAnEventThatKills"),
		bugs.NoteWithoutToken:    test(storeTests, "TestNote"),

		bugs.IsCalledIgnored:        test(storeTests, "TestFenceSeesEveryWriter"),
		bugs.WritersListedFirst:     test(storeTests, "TestTheFenceListsWritersAfterItsNumber"),
		bugs.GoneWritersIgnored:     seeds(few, "order"),
		bugs.StandbyIgnored:         test(coreTests, "TestNothingIsReadFromAStandby"),
		bugs.RestartIgnored:         test(coreTests, "TestAnotherServer"),
		bugs.CursorWithoutWatermark: seeds(few, "order"),
		bugs.CutTakenForComplete:    seeds(few, "stuck"),
		bugs.OldAnswerBelieved:      test(coreTests, "TestFloorOfADrainedLane"),
		bugs.ForgottenNotReadAgain:  seeds(some, "order"),
		bugs.ReadByCreatedAt:        test(storeTests, "TestTheCursorKeepsTheOrder"),
		bugs.SettledForgottenEarly:  seeds(some, "unexplained"),
		bugs.NoBarrier:              seeds(many, "phantom"),
		bugs.WarningIgnored:         test(storeTests, "TestFaultC5AWarningIsNoBarrier"),
		bugs.BarrierElsewhere:       test(storeTests, "TestTheBarrierIsOfOneServer"),
		bugs.BarrierNotFlushed:      test(storeTests, "TestTheBarrierIsACommit"),

		bugs.StaleDecisionSent:     test(relayTests, "TestWhatWasDecidedTooLongAgoIsNotSent"),
		bugs.NoPublishDeadline:     test(fleetTests, "TestNoPublishOutlivesItsLease"),
		bugs.SettleBeforeAck:       test(fleetTests, "TestPublishedAtOnlyAfterTheAcknowledgement"),
		bugs.PublishedOnTimeout:    test(relayTests, "TestWhoseFaultAnErrorIs"),
		bugs.PipelinePassesRefused: test(relayTests, "TestNothingPassesAnEventThatWasNotSent"),
		bugs.RedeliveryUnmarked:    test(fleetTests, "TestASecondDeliveryIsMarkedAsSuch"),
		bugs.TwoInFlight:           seeds(few, "overlaps"),
		bugs.ResumeTooEarly:        test(pubsubTests, "TestFailureInTheMiddle"),

		bugs.ErrorUnsanitised:   test(relayTests, "TestEveryErrorIsCleaned"),
		bugs.OutageCharged:      seeds(few, "wrong_charges"),
		bugs.ChargeForgotten:    seeds(few, "problems"),
		bugs.BadDeployKills:     test(fleetTests, "TestATypeWhoseContractBreaksIsParkedAndNotKilled"),
		bugs.UnknownCharged:     seeds(some, "wrong_charges"),
		bugs.BackoffOverflows:   test(coreTests, "TestTheDelayDoublesUpToItsLimit"),
		bugs.PassesFailingHead:  seeds(few, "order"),
		bugs.BlockTreatedAsSkip: seeds(few, "problems"),
		bugs.DeadTooEarly:       test(coreTests, "TestNothingDiesRightAfterATakeOver"),
		bugs.DeathNotAwaited:    seeds(some, "order"),
		bugs.UnknownTypePassed:  seeds(some, "order"),
		bugs.UnknownTypeDies:    seeds(few, "problems"),
		bugs.RetryAfterIgnored:  test(coreTests, "TestATopicIsLeftAlone"),
		bugs.NoRamp:             test(coreTests, "TestATopicComesBackByAndBy"),
		bugs.BreakerNeverProbes: seeds(few, "stuck"),

		bugs.PauseForgottenAtStart: test(coreTests, "TestAPauseIsKnownBeforeTheFirstPublish"),
		bugs.PausedTopicProbed:     test(coreTests, "TestAPausedTopicIsLeftAlone"),
		bugs.PausedTypePassed:      test(coreTests, "TestNothingPassesAPausedType"),
		bugs.ResumeSkipsWaiting:    test(coreTests, "TestNothingPassesAPausedType"),

		bugs.SettleWithoutToken:     sequences(20),
		bugs.SettleWithoutLock:      test(storeTests, "TestASettleKeepsItsLane"),
		bugs.PartialSettleForgotten: test(coreTests, "TestSettleOfALaneThatIsLost"),
		bugs.DeadLetterApart:        test(storeTests, "TestFaultD2"),
		bugs.ActionDoneTwice:        test(relayTests, "TestAnActionIsDoneOnce"),
		bugs.RedriveOfPublished:     test(relayTests, "TestEveryVerbFromEveryState"),

		bugs.FirstByLooking:      test(inboxTests, "TestFaultI3TheSecondWaits"),
		bugs.OlderIsNewer:        test(inboxTests, "TestFaultI11OutOfOrder"),
		bugs.MarkedBeforeEffect:  test(guardTests, "TestKilledConsumersOfDo"),
		bugs.HeldTakenForHandled: test(guardTests, "TestACopyOfAHeldEventIsDelayed"),
		bugs.FinishWithoutToken:  test(guardTests, "TestAFinishTellsThatTheHoldWasLost"),
		bugs.FreedWithoutToken:   test(guardTests, "TestAFailureRemovesOnlyItsOwnMark"),
		bugs.HoldNotExtended:     test(guardTests, "TestAHoldIsExtendedWhileTheHandlerRuns"),
		bugs.MarksWithoutTenant:  test(keyTests, "TestKeysAreInjective"),
	}
}

// ProofOf is the proof of a mistake, as one types it.
func ProofOf(bug bugs.Bug) string {
	p := table()[bug]
	return p.String()
}
