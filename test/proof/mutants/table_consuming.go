package mutants

// consuming are about inboxes and consumers.
var consuming = []mutant{
	{
		"first-by-looking",
		"the inbox answers by what it saw before it marked, so that two at a time are both the first", "I3",
		[]change{
			{
				"inbox/sql/first.sql",
				"SELECT count(*)::text FROM marked",
				"SELECT (NOT EXISTS (SELECT FROM {schema}.inbox_handled h WHERE h.consumer = $1::text AND h.event_id = " +
					"$2::text::uuid))::integer::text",
			},
		},
		test(inboxTests, "TestFaultI3TheSecondWaits", "commit, READ COMMITTED: got true, <nil>, want false"),
	},
	{
		"older-is-newer",
		"the guard against going backwards lets every number pass", "I11",
		[]change{
			{"inbox/sql/newer.sql", " WHERE n.seq < excluded.seq", ""},
		},
		test(inboxTests, "TestFaultI11OutOfOrder", "[1-9][0-9]* times backwards"),
	},
	{
		"marked-before-effect",
		"the guard marks the event as handled before it runs the handler", "I1",
		[]change{
			{
				"inbox/redisinbox/do.go",
				"\terr := handler(handling)\n\treturned = true\n\tif err == nil {\n\t\tstop()",
				"\tif err := h.finish(ctx); err != nil {\n\t\treturn err\n\t}\n\terr := handler(handling)\n\treturned = true\n" +
					"\tif err == nil {\n\t\tstop()",
			},
		},
		test(guardTests, "TestKilledConsumersOfDo", "the effect happened 0 times, want 1"),
	},
	{
		"held-taken-for-handled",
		"a copy is acknowledged while the first is being handled", "I3",
		[]change{
			{"inbox/redisinbox/do.go", "case strings.HasPrefix(found, heldMark):", "case false:"},
		},
		test(guardTests, "TestACopyOfAHeldEventIsDelayed", "got <nil>, want that another delivery is being handled"),
	},
	{
		"finish-without-token",
		"whoever finishes marks the event, also when another holds it by then", "I4",
		[]change{
			{
				"inbox/redisinbox/put.lua",
				"found == ARGV[1] then",
				"found == ARGV[1] or string.sub(ARGV[2], 1, 5) == 'done:' then",
			},
		},
		test(guardTests, "TestAFinishTellsThatTheHoldWasLost", "got <nil>, want that the hold was lost"),
	},
	{
		"freed-without-token",
		"whoever fails frees the event, also when another holds it or is done with it", "I5",
		[]change{
			{"inbox/redisinbox/remove.lua", "if string.sub(found, 1, #ARGV[1]) ~= ARGV[1] then", "if false then"},
		},
		test(guardTests, "TestAFailureRemovesOnlyItsOwnMark", `done:another was replaced by ""`),
	},
	{
		"hold-not-extended",
		"a hold ends while its handler is at work", "I4",
		[]change{
			{"inbox/redisinbox/hold.go", "\t\t\tcase <-beat.C:\n", "\t\t\tcase <-beat.C:\n\t\t\t\tcontinue\n"},
		},
		test(guardTests, "TestAHoldIsExtendedWhileTheHandlerRuns", "the hold was not extended"),
	},
	{
		"marks-without-tenant",
		"a mark is looked up without the tenant, so one tenant's event hides another's", "I10",
		[]change{
			{"inbox/redisinbox/guard.go", "if tenant != \"\" {\n\t\tother.tenant", "if false {\n\t\tother.tenant"},
		},
		test(keyTests, "TestKeysAreInjective", "is the key of {.*} and of {"),
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
