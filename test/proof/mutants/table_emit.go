package mutants

// emitting are about writing an event: the statement, the table and the key.
var emitting = []mutant{
	{
		"payload-through-jsonb",
		"emit casts the payload to jsonb, which sorts its keys and drops its doubles", "S3",
		[]change{
			{"outbox/sql/one.sql", "$7::text::json", "$7::text::jsonb::json"},
		},
		test(emitTests, "TestThePayloadIsStoredByteForByte", `{"b":1,"a":2} is stored in {"data": {"a": 2, "b": 1}`),
	},
	{
		"dedupe-without-tenant",
		"a dedupe key is looked up without the tenant, so one tenant's event swallows another's", "S10",
		[]change{
			{"outbox/sql/one_deduped.sql", "coalesce($6::text, '')", "''"},
		},
		test(emitTests, "TestDedupe", "the same key of a tenant: want a new event"),
	},
	{
		"mismatch-swallowed",
		"other content under a used dedupe key is called already enqueued", "A4",
		[]change{
			{"outbox/sql/one_deduped.sql", "ELSE '!' END", "ELSE '=' END"},
		},
		test(emitTests, "TestFaultA4SameKeyOtherPayload", "another payload: want ErrDedupeMismatch, got .*, <nil>"),
	},
	{
		"lane-of-another-aggregate",
		"emit of many events makes the lane of the event's type, so that an aggregate's events are in several lanes", "S5",
		[]change{
			{
				"outbox/sql/many.sql", "outbox_lane(g.namespace, g.aggregate_type", "outbox_lane(g.namespace, g.event_type",
			},
		},
		test(emitTests, "TestEmitBringsTheLane", "library, many: stored in another lane than its aggregate's"),
	},
	{
		"control-characters-emitted",
		"emit lets control characters pass, which nobody behind it refuses", "A12",
		[]change{
			{"outbox/text.go", "(text, unicode.IsControl)", "(text[:0], unicode.IsControl)"},
		},
		test(emitTests, "TestCorpus", "utf8/next-line control in an aggregate id: was accepted, must be refused"),
	},
	{
		"sequence-cache",
		"the sequence hands out its numbers in blocks of 20, a block a session", "A16",
		[]change{
			{"schema/outbox/00001_events.sql", "AS IDENTITY (CACHE 1)", "AS IDENTITY (CACHE 20)"},
		},
		test(emitTests, "TestFaultA16SequenceCache", "the migration made a sequence with CACHE 20"),
	},
	{
		"failed-emit-forgotten", "InTx commits after an emit that failed without being refused", "A9",
		[]change{
			{
				"outbox/emit.go", `failed(ctx, fmt.Errorf("outbox: emit: %w%s", err, hint(err, schema)))`,
				`fmt.Errorf("outbox: emit: %w%s", err, hint(err, schema))`,
			},
		},
		test(emitTests, "TestFaultA9NeverSent", "want the error of the emit that was dropped, got <nil>"),
	},
	{
		"key-without-namespace", "the key of an aggregate leaves its namespace out", "S5",
		[]change{{"outbox/aggregate.go", `inKeys.Replace(a.Namespace) + "/" + `, ""}},
		test(relayTests, "TestKeysOfDifferentAggregatesDiffer", "is the key of {.*} and of {"),
	},
}
