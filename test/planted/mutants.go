package planted

import "slices"

// mutant is a mistake as data: a text of the product, and the wrong one in its place. The product's code does not
// know of it; see [overlay].
type mutant struct {
	name    string
	mistake string // what the code does wrong, in a sentence
	of      string // the fault or the promise, as docs/faults.md calls it
	changes []change
	proof   proof // the cheapest that finds it
}

// change is made in a file, named from the root of the repository. What it changes must be there once; in a Go
// file it lies inside one function.
type change struct{ file, from, to string }

// mutants are all of them.
func mutants() []mutant {
	return slices.Concat(mutantsOfReading(), mutantsOfHolding(), mutantsOfSettling(), mutantsOfEdges())
}

// mutantsOfReading are about lanes, writers and servers: what is known of them, and what a read may begin at.
func mutantsOfReading() []mutant {
	return []mutant{
		{
			"lease-from-the-answer", "a lease is counted from the answer to its renewal, and not from before it was sent", "C6",
			[]change{{
				coreTests + "/members.go",
				"c.renewed(now, l, beat.Lanes[i], ", "c.renewed(told, l, beat.Lanes[i], ",
			}},
			test(coreTests, "TestALeaseBeginsBeforeItsRenewalIsSent", "2 events were sent: one was sent at the end of its lease"),
		},
		{
			"last-gone-writer", "a read without some types goes back to the last of the writers that have ended, and not to the first", "A15",
			[]change{{storeTests + "/sql/read_except.sql", "min(low) AS low", "max(low) AS low"}},
			test(storeTests, "TestTheReadDecidesWhoIsGone", `both gone, without \[order_paid\]: read \[9\]`),
		},
		{
			"unreached-lanes-go-on", "lanes that a read did not reach keep their cursor, though a writer has ended that it was for", "A15",
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
			[]change{{coreTests + "/apart.go", "l.lane.most = max(1, l.limit/2)", "l.lane.most = max(1, l.limit)"}},
			test(coreTests, "TestALaneOfLargeEventsBehindASlowLink", " of 400 large events are published after five minutes"),
		},
		{
			"swept-row-unread", "what a sweep finds of a topic with its own reader is left to the main read, which leaves it out", "L1",
			[]change{{coreTests + "/sweep.go", "at.from = min(at.from, from)", "_ = at"}},
			test(coreTests, "TestASweptEventOfAPausedTopic", "the event is in state 0 a minute after its topic came back"),
		},
	}
}

// mutantsOfHolding are about events that wait, are parked or die.
func mutantsOfHolding() []mutant {
	return []mutant{
		{
			"old-look-ends-hold", "a look that found nothing ends a hold, though something changed since it began", "S4",
			[]change{{coreTests + "/hold.go", "case h.stale:", "case h.stale && len(rows) > 0:"}},
			test(coreTests, "TestALookThatIsOlderThanAChangeEndsNoHold", "out of order"),
		},
		{
			"due-page-without-place", "every look for due retries begins at the first, however many are due and cannot go", "L1",
			[]change{{coreTests + "/hold.go", "if c.held.onward {", "if false {"}},
			test(coreTests, "TestRedriveBeforeALineThatHangs", "a minute after the redrive [0-9]+ of 200 good events are published"),
		},
		{
			"parked-since-created", "a parked event is as old as the event is, however short it is parked", "V1",
			[]change{{storeTests + "/sql/old_parked.sql", "AND e.next_attempt_at <= (", "AND e.created_at <= ("}},
			test(storeTests, "TestOldParked", "parked for half a minute are "),
		},
		{
			"outlived-counts-nothing", "a relay that has outlived a publish of the noted event does not speak for it", "C17",
			[]change{{
				storeTests + "/sql/note.sql",
				"noted_count - ($4::boolean AND noted_count > 0 AND noted_by IS NOT DISTINCT FROM token)::integer", "noted_count",
			}},
			test(storeTests, "TestNote", "outlived once: "),
		},
		{
			"blamed-in-its-turn", "a relay that takes care does not begin with what others died with", "C17",
			[]change{{coreTests + "/care.go", "!l.faced && held < 2*c.config.HeldPeriod", "false"}},
			test(coreTests, "TestATopicThatHangsWithSomethingHeldWhileRelaysAreKilled", "events of a topic that hangs are dead"),
		},
		{
			"sent-beside-a-suspect", "a relay sends other events while a suspect waits for the time at which it may be declared dead", "C17",
			[]change{{coreTests + "/care.go", "return held < 2*(c.config.Deadline+c.config.HeldPeriod)", "return false"}},
			test(coreTests, "TestSeveralEventsThatKill", "killer [0-9] is in state [0-2]"),
		},
		{
			"noted-overtaken", "another event is sent between a note and the event that it names", "C17",
			[]change{{coreTests + "/publish.go", "\t\t\tc.notedFirst()\n", ""}},
			test(coreTests, "TestWhatIsNotedIsSent", "noted are .*, and sent are"),
		},
		{
			"care-ends-beside-a-note", "care ends while the noted event is in flight", "C17",
			[]change{{coreTests + "/care.go", "return l.careful || l.noted != outbox.ID{} && (l.inFlight > 0 || c.soonWritten(l) > 0)", "return l.careful"}},
			test(coreTests, "TestCareLastsUntilTheNotedEventIsAnswered", "events are in flight, and .* is noted"),
		},
		{
			"broken-type-unchecked", "once most events of a type have broken their contract, all of them are parked without a look", "V4",
			[]change{{
				coreTests + "/line.go", "\tdefault:\n\t\tl := c.lineOf(key)\n",
				"\tcase c.typeOf(r.Type).broken >= enoughBroken:\n\t\tc.park(now, r, key, \"like most\")\n\tdefault:\n\t\tl := c.lineOf(key)\n",
			}},
			test(coreTests, "TestMalformedEventsOfOneTenantStopNobodyElse", "0 of 30 good events are out"),
		},
		{
			"broken-counted-anew", "one event that keeps its contract begins the count of those that do not anew", "V4",
			[]change{{coreTests + "/publish.go", "c.typeOf(r.Type).record(false)", "*c.typeOf(r.Type) = typeHealth{}"}},
			test(coreTests, "TestFewThatPassDoNotMakeABadDeployDeadlier", `the states are map\[5:[0-9]{3} `),
		},
		{
			"contract-charged", "an event that breaks its contract is charged with an attempt, though nothing was sent", "S9",
			[]change{{coreTests + "/blame.go", "if !outcome.Contract { // else nothing was sent", "if true { // else nothing was sent"}},
			test(coreTests, "TestABrokenContractCountsNoAttempt", "state 5 after 3 attempts"),
		},
		{
			"unknown-death-blocks", "an event of an unknown type that dies blocks its aggregate, and nobody has asked for that", "L3",
			[]change{{coreTests + "/blame.go", "if route.Block && !planted", "if (route.Block || route.Topic == \"\") && !planted"}},
			test(coreTests, "TestTheDeathOfAnUnknownTypeStopsNobody", "0 of 2 are dead"),
		},
		{
			"unknown-ages-in-turn", "an event of an unknown type begins to age only when those before it are dead", "V1",
			[]change{{
				coreTests + "/hold.go", "for _, event := range events {\n\t\tif r := c.takeHeld(now, h, event); r != nil {\n\t\t\tc.notKnown(r)",
				"for _, event := range events[:1] {\n\t\tif r := c.takeHeld(now, h, event); r != nil {\n\t\t\tc.notKnown(r)",
			}},
			test(coreTests, "TestWhatWaitsOfAnUnknownTypeIsParked", "1 of 5 are parked"),
		},
	}
}

// mutantsOfSettling are about what is written down of an event when somebody else has changed it.
func mutantsOfSettling() []mutant {
	return []mutant{
		{
			"death-of-any-row", "a death that is settled again does not ask what the event was when it died", "S7",
			[]change{{
				storeTests + "/sql/settle.sql",
				"AND e.state = r.state AND (e.state NOT IN (1, 2) OR e.next_attempt_at = r.at)", "",
			}},
			test(storeTests, "TestWhatOperatorsUndidStaysUndone", "dead from [0-3], undone and settled again: state 5"),
		},
		{
			"retry-of-any-row", "a charge that is settled again does not ask what the event was when it was charged", "S7",
			[]change{{
				storeTests + "/sql/settle.sql",
				"AND e.state = r.state AND (e.state <> 1 OR e.next_attempt_at = r.at)\n    RETURNING e.id\n), waiting AS (", "    RETURNING e.id\n), waiting AS (",
			}},
			test(storeTests, "TestWhatOperatorsUndidStaysUndone", "redriven and settled again: 3 attempts"),
		},
		{
			"too-late-taken-for-applied", "a settle that came too late for its row counts as applied", "S7",
			[]change{{coreTests + "/settle.go", "sent[i].unchanged = !sent[i].unsure && slices.Contains(ids, sent[i].row.ID)", "sent[i].unchanged = false && len(ids) > 0"}},
			test(coreTests, "TestASettleThatComesTooLateIsNotTakenForApplied", `told map\[applied:1\]`),
		},
		{
			"lost-answer-too-late", "a settle whose answer was lost, and that had been applied, is taken for one that came too late", "S7",
			[]change{{coreTests + "/settle.go", "sent[i].unchanged = !sent[i].unsure && ", "sent[i].unchanged = "}},
			test(coreTests, "TestALostAnswerIsNotTooLate", `told map\[uncertain:1 unchanged:1\], counted 0 deaths`),
		},
		{
			"all-too-late", "one row for which a settle came too late speaks for all of the settle", "S7",
			[]change{{coreTests + "/settle.go", "slices.Contains(ids, sent[i].row.ID)", "len(ids) > 0"}},
			test(coreTests, "TestOnlyWhatTheAnswerNamesIsUnchanged", "counted {Published:0 "),
		},
		{
			"too-late-at-once", "a row for which a settle came too late is read again without a rest", "S7",
			[]change{{coreTests + "/settle.go", "h.due = now + c.config.HeldPeriod", "h.due = min(h.due, now)"}},
			test(coreTests, "TestARowThatIsNeverAsItWasRead", "does not come to rest"),
		},
		{
			"late-suspect-sent", "a suspect whose death came too late is sent again", "C17",
			[]change{{coreTests + "/settle.go", "if f.unchanged && f.reason == reasonCrashSuspect {", "if f.unchanged && f.reason == \"\" {"}},
			test(coreTests, "TestASuspectWhoseDeathComesTooLateIsNotSent", "the suspect was sent: true"),
		},
		{
			"too-late-untold", "the database does not say for which rows a settle came too late", "S7",
			[]change{{storeTests + "/settle.go", "if answer.Applied {\n\t\tfor", "if !answer.Applied {\n\t\tfor"}},
			test(storeTests, "TestWhatOperatorsUndidStaysUndone", "settled again: \\[\\] of"),
		},
	}
}

// mutantsOfEdges are about what is written, sent and consumed.
func mutantsOfEdges() []mutant {
	return []mutant{
		{
			"failed-emit-forgotten", "InTx commits after an emit that failed without being refused", "A9",
			[]change{{"outbox/emit.go", `failed(ctx, fmt.Errorf("outbox: emit: %w", err))`, `fmt.Errorf("outbox: emit: %w", err)`}},
			test(emitTests, "TestFaultA9NeverSent", "want the error of the emit that was dropped, got <nil>"),
		},
		{
			"panic-charged", "a publisher that panics is taken for one that refuses the event", "P2",
			[]change{{"relay/panic.go", "core.Outcome{Class: core.Unknown,", "core.Outcome{Class: core.Rejected,"}},
			test(relayTests, "TestAPanicIsChargedOnlyWhenOthersPass", "all panic: got {Class:"),
		},
		{
			"client-retries", "the NATS client sends a message again by itself", "P4",
			[]change{{"broker/natsjetstream/publisher.go", "PublishMsgAsync(message, jetstream.WithRetryAttempts(0))", "PublishMsgAsync(message)"}},
			test(natsTests, "TestNothingIsSentTwice", "the message was sent 3 times"),
		},
		{
			"key-without-namespace", "the key of an aggregate leaves its namespace out", "S5",
			[]change{{"outbox/aggregate.go", `inKeys.Replace(a.Namespace) + "/" + `, ""}},
			test(relayTests, "TestKeysOfDifferentAggregatesDiffer", "is the key of {.*} and of {"),
		},
		{
			"newest-of-any-namespace", "the inbox compares an event with those of another namespace", "I11",
			[]change{{"inbox/newer.go", "cmp.Or(aggregate.Namespace, outbox.DefaultNamespace)", "outbox.DefaultNamespace"}},
			test(inboxTests, "TestALateEventOfAnotherNamespaceIsNotOlder", "of the namespace [a-z]+ has 0 effects, want 1"),
		},
		{
			"unknown-acknowledged", "a consumer acknowledges events of types that it does not know", "V1",
			[]change{{
				"consumer/consumer.go",
				"Verdict{Outcome: Unknown, After: backoff(attempt)}", "Verdict{Outcome: Ignored}",
			}},
			test("consumer", "TestUnknownTypesAreGivenBack", "at attempt 1: got {Outcome:ignored "),
		},
		{
			"handlers-outage-charged", "events pay for an outage of the handlers in the relay's process", "P8",
			[]change{{
				"consumer/consumer.go",
				"case errors.Is(ctx.Err(), context.Canceled), c.stalls[event.Type].failed(event.ID):",
				"case errors.Is(ctx.Err(), context.Canceled), false:",
			}},
			test("consumer", "TestTryTellsAnOutageFromABadEvent", "the third: got {Outcome:failed "),
		},
		{
			"no-handler-published", "an event without a handler in the relay's process counts as published", "V1",
			[]change{{
				"relay/handlers.go",
				"case consumer.Handled, consumer.Duplicate, consumer.Ignored:",
				"case consumer.Handled, consumer.Duplicate, consumer.Ignored, consumer.Unknown:",
			}, {"relay/handlers.go", "case consumer.Delayed, consumer.Unknown:", "case consumer.Delayed:"}},
			test(relayTests, "TestAnEventWithoutAHandlerWaits", "got {Class:"),
		},
	}
}
