package mutants

// erasing are about payloads that give way to a tombstone.
var erasing = []mutant{
	{
		"erased-and-redriven",
		"an erased event is redriven, and there is nothing to publish of it", "EM-2",
		[]change{{
			"schema/outbox/00004_dead_letters.sql",
			"WHERE x.event_id = f.id AND x.verb = 'erase' OFFSET 0",
			"WHERE x.event_id = f.id AND x.verb = 'erase' AND false OFFSET 0",
		}},
		test(operatorTests, "TestErasedIsNeverSent", `redrive: {.* Outcome:done`),
	},
	{
		"erased-before-its-copy",
		"an event is erased of which a copy is still to be sent", "EM-2",
		[]change{{"schema/outbox/00011_erasure.sql", "w.finished AND NOT w.is_open AND", "w.finished AND"}},
		test(operatorTests, "TestACopyToSendKeepsAnEvent", `erase: done published`),
	},
	{
		"leave-to-erase-stays",
		"behind an erasure the transaction may change every payload", "EM-2",
		[]change{{"schema/outbox/00011_erasure.sql", "    UPDATE outbox_meta SET erasing = NULL;\n", ""}},
		test(schemaTests, "TestNobodyErasesByHand", `SET payload_json = '{}'; COMMIT: got <nil>, want SQLSTATE 23001`),
	},
	{
		"erased-but-for-letters",
		"dead letters whose event retention has deleted are found by an id alone, and by no filter", "EM-2",
		[]change{{operatorTests + "/erase_search.go", "len(filter.notOfLetters()) == 0", "filter.onlyIDs()"}},
		test(operatorTests, "TestErasureFindsWhatRetentionLeft", `want erased map\[deleted:1\]`),
	},
	{
		"erased-by-a-list",
		"an erasure looks for its events as a list does, and not at those made long before they were published", "EM-2",
		[]change{{operatorTests + "/erase_search.go", "if len(filter.IDs) > 0 {", "if true {"}},
		test(operatorTests, "TestErasureFindsWhatWasPublishedLate", `planned: erased map\[published:1\]`),
	},
}
