package mutants

// settling are about what is written down of an event, also when somebody else has changed it.
var settling = []mutant{
	{
		"settle-without-token",
		"a settle does not ask who holds the lane", "S6",
		[]change{
			{storeTests + "/sql/settle.sql", "FROM own WHERE own.lanes @> $3::smallint[])", "FROM own)"},
			{storeTests + "/sql/settle_published.sql", "FROM own WHERE own.lanes @> $3::smallint[])", "FROM own)"},
		},
		sequences(20),
	},
	{
		"settle-without-lock",
		"a settle asks who holds the lane and does not keep it from being taken", "S6",
		[]change{
			{storeTests + "/sql/settle.sql", "r.ended_at IS NULL FOR KEY SHARE", "r.ended_at IS NULL"},
			{storeTests + "/sql/settle_published.sql", "r.ended_at IS NULL FOR KEY SHARE", "r.ended_at IS NULL"},
		},
		test(storeTests, "TestASettleKeepsItsLane", "beside the settle, want all but its own"),
	},
	{
		"partial-settle-forgotten",
		"when a settle is refused for one lane, those of the other lanes are not sent again", "P5",
		[]change{
			{
				coreTests + "/settle.go",
				"\t\t\t\tc.loseStale(sent, answer.Held)\n\t\t\t\tc.settleAgain(sent)\n",
				"\t\t\t\tc.loseStale(sent, answer.Held)\n",
			},
		},
		test(coreTests, "TestSettleOfALaneThatIsLost", "the event of the lane that is held is in state 0"),
	},
	{
		"dead-letter-apart",
		"the dead letter is written in a transaction of its own", "S8",
		[]change{
			{storeTests + "/sql/settle.sql", "FROM settled WHERE next IN (4, 5) ORDER BY seq", "FROM settled WHERE false"},
			{
				storeTests + "/settle.go",
				"\tafterSettle(settle)\n\treturn answer, nil\n",
				"\tafterSettle(settle)\n\tfor _, death := range settle.Dead {\n\t\tif !answer.Applied {\n\t\t\tbreak\n\t\t}\n" +
					"\t\tschema := s.sequence[:len(s.sequence)-len(\".outbox_events_seq_seq\")]\n\t\t_, err := " +
					"s.pool.Exec(ctx, `INSERT INTO `+schema+`.outbox_dlq (event_seq, event_id, created_at, attempts, blocking,\n" +
					"\t\t\tnamespace, event_type, aggregate_type, aggregate_id, topic, error_reason, payload_json, headers)\n" +
					"\t\t\tSELECT seq, id, created_at, attempt_count, $2::boolean, namespace, event_type,\n\t\t\taggregate_type, " +
					"aggregate_id, nullif($3::text, ''), $4::text, payload_json, headers\n\t\t\tFROM `+schema+`.outbox_events WHERE " +
					"id = $1::uuid`, uuid(death.ID), death.Blocking, death.Topic, death.Reason)\n\t\tif err != nil {\n\t\t\treturn " +
					"answer, failed(\"settle\", err)\n\t\t}\n\t}\n\treturn answer, nil\n",
			},
		},
		test(storeTests, "TestFaultD2", `changed to\n`),
	},
	{
		"redrive-of-published",
		"an operator's redrive takes published events as well", "S7",
		[]change{
			{
				"schema/outbox/00004_dead_letters.sql",
				"f.state = ANY (starts)",
				"(f.state = ANY (starts) OR f.state = 6)",
			},
			{
				"schema/outbox/00004_dead_letters.sql",
				"e.state = 5 AND 5 = ANY (starts) AS acts",
				"e.state = 6 OR e.state = 5 AND 5 = ANY (starts) AS acts",
			},
		},
		test(operatorTests, "TestEveryVerbFromEveryState", "redrive of published: done, and the row is"),
	},
	{
		"action-done-twice",
		"an operator's action that is sent again is done again", "D8",
		[]change{
			{
				"schema/outbox/00004_dead_letters.sql",
				" AND NOT over AND f.id NOT IN (SELECT x.event_id FROM earlier x)", "",
			},
		},
		test(operatorTests, "TestAnActionIsDoneOnce", `violates unique constraint "outbox_actions_once"`),
	},
	{
		"death-of-any-row", "a death that is settled again does not ask what the event was when it died", "S7",
		[]change{{
			storeTests + "/sql/settle.sql",
			"h.kind IN (1, 2, 3) AND h.version = a.version END", "h.kind IN (1, 2, 3) END",
		}},
		test(storeTests, "TestWhatOperatorsUndidStaysUndone", "dead from [0-3], undone and settled again: state 5"),
	},
	{
		"retry-of-any-row", "a charge that is settled again does not ask what the event was when it was charged", "S7",
		[]change{{
			storeTests + "/sql/settle.sql",
			"h.kind IN (1, 3) AND h.version = a.version", "h.kind IN (1, 3)",
		}},
		test(storeTests, "TestWhatOperatorsUndidStaysUndone", "redriven and settled again: 3 attempts"),
	},
	{
		"too-late-taken-for-applied", "a settle that came too late for its row counts as applied", "S7",
		[]change{
			{
				coreTests + "/settle.go", "sent[i].unchanged = !sent[i].unsure && slices.Contains(ids, sent[i].row.ID)",
				"sent[i].unchanged = false && len(ids) > 0",
			},
		},
		test(coreTests, "TestASettleThatComesTooLateIsNotTakenForApplied", `told map\[applied:1\]`),
	},
	{
		"lost-answer-too-late",
		"a settle whose answer was lost, and that had been applied, is taken for one that came too late", "S7",
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
		[]change{
			{
				coreTests + "/settle.go", "if f.unchanged && f.reason == reasonCrashSuspect {",
				"if f.unchanged && f.reason == \"\" {",
			},
		},
		test(coreTests, "TestASuspectWhoseDeathComesTooLateIsNotSent", "the suspect was sent: true"),
	},
	{
		"too-late-untold", "the database does not say for which rows a settle came too late", "S7",
		[]change{{storeTests + "/settle.go", "range unchanged {", "range unchanged[:0] {"}},
		test(storeTests, "TestWhatOperatorsUndidStaysUndone", "settled again: \\[\\] of"),
	},
}
