package planted

// A Bug is a mistake's name.
type Bug string

// The mistakes. What each of them is stands in [List].
const (
	AcquireHeldLanes       Bug = "acquire-held-lanes"
	SettleWithoutToken     Bug = "settle-without-token"
	SettleWithoutLock      Bug = "settle-without-lock"
	TokenIsTheRelay        Bug = "token-is-the-relay" //nolint:gosec // no credential
	SettleBeforeAck        Bug = "settle-before-ack"
	PublishedOnTimeout     Bug = "published-on-timeout"
	OutageCharged          Bug = "outage-charged"
	ChargeForgotten        Bug = "charge-forgotten"
	BadDeployKills         Bug = "bad-deploy-kills"
	UnknownCharged         Bug = "unknown-charged"
	ReadByCreatedAt        Bug = "read-by-created-at"
	PassesFailingHead      Bug = "passes-failing-head"
	CursorWithoutWatermark Bug = "cursor-without-watermark"
	CutTakenForComplete    Bug = "cut-taken-for-complete"
	OldAnswerBelieved      Bug = "old-answer-believed"
	ForgottenNotReadAgain  Bug = "forgotten-not-read-again"
	WritersListedFirst     Bug = "writers-listed-first"
	GoneWritersIgnored     Bug = "gone-writers-ignored"
	IsCalledIgnored        Bug = "is-called-ignored"
	StandbyIgnored         Bug = "standby-ignored"
	RestartIgnored         Bug = "restart-ignored"
	SequenceCache          Bug = "sequence-cache"
	PayloadThroughJSONB    Bug = "payload-through-jsonb"
	DedupeWithoutTenant    Bug = "dedupe-without-tenant"
	MismatchSwallowed      Bug = "mismatch-swallowed"
	ErrorUnsanitised       Bug = "error-unsanitised"
	LeaseByWallClock       Bug = "lease-by-wall-clock"
	LeaseNotLookedAt       Bug = "lease-not-looked-at"
	RenewalUnchecked       Bug = "renewal-unchecked"
	GivenBackInFlight      Bug = "given-back-in-flight"
	ReleaseWithoutToken    Bug = "release-without-token"
	StaleDecisionSent      Bug = "stale-decision-sent"
	NoPublishDeadline      Bug = "no-publish-deadline"
	DeadLetterApart        Bug = "dead-letter-apart"
	UnknownTypeDies        Bug = "unknown-type-dies"
	UnknownTypePassed      Bug = "unknown-type-passed"
	NoBarrier              Bug = "no-barrier"
	BarrierNotFlushed      Bug = "barrier-not-flushed"
	WarningIgnored         Bug = "warning-ignored"
	BarrierElsewhere       Bug = "barrier-elsewhere"
	BackoffOverflows       Bug = "backoff-overflows"
	PartialSettleForgotten Bug = "partial-settle-forgotten"
	SettledForgottenEarly  Bug = "settled-forgotten-early"
	FloorTooHigh           Bug = "floor-too-high"
	FloorFalls             Bug = "floor-falls"
	HeldNotReadFirst       Bug = "held-not-read-first"
	BlockTreatedAsSkip     Bug = "block-treated-as-skip"
	DeadTooEarly           Bug = "dead-too-early"
	DeathNotAwaited        Bug = "death-not-awaited"
	NoteWithoutToken       Bug = "note-without-token"
	QuarantinedAtOnce      Bug = "quarantined-at-once"
	BreakerNeverProbes     Bug = "breaker-never-probes"
	RetryAfterIgnored      Bug = "retry-after-ignored"
	NoRamp                 Bug = "no-ramp"
	RedriveOfPublished     Bug = "redrive-of-published"
	ActionDoneTwice        Bug = "action-done-twice"
	PipelinePassesRefused  Bug = "pipeline-passes-refused"
	RedeliveryUnmarked     Bug = "redelivery-unmarked"
	TwoInFlight            Bug = "two-in-flight"
	ResumeTooEarly         Bug = "resume-too-early"
	PauseForgottenAtStart  Bug = "pause-forgotten-at-start"
	PausedTopicProbed      Bug = "paused-topic-probed"
	PausedTypePassed       Bug = "paused-type-passed"
	ResumeSkipsWaiting     Bug = "resume-skips-waiting"
	FirstByLooking         Bug = "first-by-looking"
	OlderIsNewer           Bug = "older-is-newer"
	MarkedBeforeEffect     Bug = "marked-before-effect"
	HeldTakenForHandled    Bug = "held-taken-for-handled"
	FinishWithoutToken     Bug = "finish-without-token"
	FreedWithoutToken      Bug = "freed-without-token"
	HoldNotExtended        Bug = "hold-not-extended"
	MarksWithoutTenant     Bug = "marks-without-tenant"
)

// Description is what there is to know about a mistake.
type Description struct {
	Bug Bug
	// Mistake says in a sentence what the code does wrong.
	Mistake string
	// Of is the fault or the promise that the right code is about, as docs/faults.md calls it.
	Of string
}

// List returns all mistakes, in the order of an event's path.
func List() []Description {
	return []Description{
		{PayloadThroughJSONB, "emit casts the payload to jsonb, which sorts its keys and drops its doubles", "S3"},
		{DedupeWithoutTenant, "a dedupe key is looked up without the tenant, so one tenant's event swallows another's", "S10"},
		{MismatchSwallowed, "other content under a used dedupe key is called already enqueued", "A4"},
		{SequenceCache, "the sequence hands out its numbers in blocks of 20, a block a session", "A16"},

		{AcquireHeldLanes, "lanes are taken whether or not somebody holds them", "C1"},
		{TokenIsTheRelay, "every acquisition of a relay has the same token, so an old settle fits the new tenure", "S6"},
		{LeaseByWallClock, "the relay measures its lease by the wall clock, which can be set back", "C8"},
		{LeaseNotLookedAt, "a publish begins however little is left of the lease", "C6"},
		{RenewalUnchecked, "a renewal is taken for done without a look at which lanes it has renewed", "C7"},
		{GivenBackInFlight, "a lane is given back while something of it is in flight", "C18"},
		{ReleaseWithoutToken, "a lane is given back by a relay that has lost it", "S6"},
		{HeldNotReadFirst, "a new owner reads what is ready without knowing what is held", "S4"},
		{FloorTooHigh, "the floor that is written down passes events that are read and not settled", "S1"},
		{FloorFalls, "a renewal can lower the floor", "C16"},
		{NoteWithoutToken, "a crash counts against the noted event whoever has noted it", "C17"},
		{QuarantinedAtOnce, "an event is quarantined after the first crash that it was noted in", "C17"},

		{IsCalledIgnored, "the first number of a fresh sequence is taken for drawn", "A15"},
		{WritersListedFirst, "a fence lists the open transactions before it reads the sequence", "A15"},
		{GoneWritersIgnored, "a read does not go back to what a writer left that has ended", "A15"},
		{StandbyIgnored, "a fence from a server in recovery is used", "C21"},
		{RestartIgnored, "what was known of one server is believed of the next", "S1"},
		{CursorWithoutWatermark, "a lane is read on from the last number that was seen", "A15"},
		{CutTakenForComplete, "a read that was cut by its limit is taken for all there is", "S1"},
		{OldAnswerBelieved, "the answer to a read moves bounds that went back since it was sent", "S1"},
		{ForgottenNotReadAgain, "what is dropped from memory is not read again", "S1"},
		{ReadByCreatedAt, "ready events are read in the order of their time", "A14"},
		{SettledForgottenEarly, "a settled event is forgotten while an older read can still show it", "S5"},
		{NoBarrier, "events are published that may not be durable", "A19"},
		{BarrierNotFlushed, "the barrier commits as the role says, which may be without the disk", "A19"},
		{WarningIgnored, "a commit that did not wait for its standby counts as a barrier", "C5"},
		{BarrierElsewhere, "a barrier of another server than the one that was read from counts", "A19"},

		{StaleDecisionSent, "what was decided before the process stood still is sent after it", "C7"},
		{NoPublishDeadline, "a publish may take for ever", "C6"},
		{SettleBeforeAck, "an event is settled when it is handed over, and not when it is acknowledged", "P1"},
		{PublishedOnTimeout, "a publish that was not answered in time is taken for acknowledged", "P3"},
		{PipelinePassesRefused, "what is behind an event that was not sent is sent", "S4"},
		{RedeliveryUnmarked, "a message that the broker may have does not say so", "P1"},
		{TwoInFlight, "two events of one aggregate are in flight at a broker that does not keep their order", "S5"},
		{ResumeTooEarly, "a paused key of Pub/Sub goes on while messages wait behind the failure", "P7"},

		{ErrorUnsanitised, "the broker's error is stored as it is", "S-4"},
		{OutageCharged, "a route's failure is charged to the event", "P8"},
		{ChargeForgotten, "an attempt that is charged is not counted, so an event is tried for ever", "S9"},
		{BadDeployKills, "a type most of whose events break their contract is not paused, and all of them die", "V4"},
		{UnknownCharged, "an unknown outcome is charged whether or not the route works", "P2"},
		{BackoffOverflows, "the delay doubles until it overflows", "S-5"},
		{PassesFailingHead, "events that come behind a retry are published before it", "S-7"},
		{BlockTreatedAsSkip, "events behind a dead one go on, whatever its contract says", "S-8"},
		{DeadTooEarly, "a new owner declares an event dead that the old one may have in flight", "S7"},
		{DeathNotAwaited, "under skip, the next events go before the death is written down", "S4"},
		{UnknownTypeDies, "an event of an unknown type is dead at once", "V1"},
		{UnknownTypePassed, "events pass one of their aggregate whose topic nobody knows", "V1"},
		{BreakerNeverProbes, "a paused route is never tried again", "L1"},
		{RetryAfterIgnored, "a broker that asks to be left alone is not", "P13"},
		{NoRamp, "a route that comes back gets everything at once", "S-6"},
		{PauseForgottenAtStart, "a relay that starts goes by a standing pause only from its second heartbeat on", "V4"},
		{PausedTopicProbed, "a topic that an operator has paused is probed as if it had failed", "V4"},
		{PausedTypePassed, "events pass one of their aggregate and topic whose type is paused", "S4"},
		{ResumeSkipsWaiting, "what waits is not looked at when its type is resumed", "L1"},

		{SettleWithoutToken, "a settle does not ask who holds the lane", "S6"},
		{SettleWithoutLock, "a settle asks who holds the lane and does not keep it from being taken", "S6"},
		{PartialSettleForgotten, "when a settle is refused for one lane, those of the other lanes are not sent again", "P5"},
		{DeadLetterApart, "the dead letter is written in a transaction of its own", "S8"},
		{RedriveOfPublished, "an operator's redrive takes published events as well", "S7"},
		{ActionDoneTwice, "an operator's action that is sent again is done again", "D8"},

		{FirstByLooking, "the inbox answers by what it saw before it marked, so that two at a time are both the first", "I3"},
		{OlderIsNewer, "the guard against going backwards lets every number pass", "I11"},
		{MarkedBeforeEffect, "the guard marks the event as handled before it runs the handler", "I1"},
		{HeldTakenForHandled, "a copy is acknowledged while the first is being handled", "I3"},
		{FinishWithoutToken, "whoever finishes marks the event, also when another holds it by then", "I4"},
		{FreedWithoutToken, "whoever fails frees the event, also when another holds it or is done with it", "I5"},
		{HoldNotExtended, "a hold ends while its handler is at work", "I4"},
		{MarksWithoutTenant, "a mark is looked up without the tenant, so one tenant's event hides another's", "I10"},
	}
}
