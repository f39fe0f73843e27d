package mutants

// storing are about the tables: where an event lies, who may write it, and what a settle finds there.
var storing = []mutant{
	{
		"lanes-from-zero",
		"lanes are numbered from 0 on, which a row has that brings none", "S4",
		[]change{{"schema/outbox/00001_events.sql", "& 63) + 1)::smallint", "& 63) + 0)::smallint"}},
		test(schemaTests, "TestLanesNeverChange", "default/order/1 is in lane 48, want 49"),
	},
	{
		"lane-zero-taken-as-given",
		"a model that sends 0 for a lane that it does not know has its event in lane 0, which nobody reads", "S4",
		[]change{{"schema/outbox/00001_events.sql", "CHECK (VALUE BETWEEN 1 AND 64)", "CHECK (VALUE BETWEEN 0 AND 64)"}},
		test(schemaTests, "TestWhoBringsNoLaneIsChecked", "lane 0, 2 bytes: got <nil>"),
	},
	{
		"written-by-hand-unchecked",
		"an event that is written by hand gets its lane, and is held to no rule", "A13",
		[]change{{
			"schema/outbox/00002_emit.sql",
			"PERFORM outbox_check_event(NEW.id, NEW.namespace, NEW.event_type, NEW.aggregate_type, NEW.aggregate_id,\n" +
				"        NEW.tenant_id, NEW.dedupe_key, NEW.payload_json, NEW.headers);", "",
		}},
		test(schemaTests, "TestWhoBringsNoLaneIsChecked", "payload_is_envelope: got <nil>"),
	},
	{
		"lane-may-change",
		"the lane of an event may be changed, and its aggregate is in two lanes then", "S4",
		[]change{{
			"schema/outbox/00011_erasure.sql",
			"created_at, lane, namespace, event_type, aggregate_type, aggregate_id, tenant_id,\n        dedupe_key\n",
			"created_at, namespace, event_type, aggregate_type, aggregate_id, tenant_id,\n        dedupe_key\n",
		}},
		test(schemaTests, "TestEventsAreAppendOnly", `SET lane = lane WHERE id = \$1: got <nil>, want SQLSTATE 23001`),
	},
	{
		"no-room-on-the-page",
		"the pages are filled so far that the new version of the last row does not fit", "A17",
		[]change{{"schema/outbox/00001_events.sql", "fillfactor = 49", "fillfactor = 50"}},
		test(schemaTests, "TestEverySettleIsHOT", `snapshot: \d+ of \d+ events were settled on their page`),
	},
	{
		"published-at-in-an-index",
		"an index has a column that publishing changes, so every publish writes into every index", "A17",
		[]change{{
			"schema/outbox/00001_events.sql", "CREATE INDEX outbox_events_id ON outbox_events (id);",
			"CREATE INDEX outbox_events_id ON outbox_events (id);\n" +
				"CREATE INDEX outbox_events_published_at ON outbox_events (published_at);",
		}},
		test(schemaTests, "TestWhatTheLayoutForbids", "outbox_events_published_at names published_at"),
	},
	{
		"operator-beside-the-log",
		"an operator may change where an event stands without a row in the log", "D7",
		[]change{{
			"schema/outbox/00012_access.sql", "grants := ARRAY['EXECUTE ON FUNCTION outbox_act,",
			"grants := ARRAY['UPDATE (state) ON outbox_events', 'EXECUTE ON FUNCTION outbox_act,",
		}},
		test(schemaTests, "TestOperatorsChangeNothingWithoutTheLog", "an operator makes a ready event one in state 7"),
	},
	{
		"retry-without-a-time",
		"a retry may be held without a time at which it is due, and is never tried again", "S-7",
		[]change{{
			"schema/outbox/00001_events.sql", "CHECK (kind BETWEEN 1 AND 4 AND (kind <> 1 OR due IS NOT NULL))",
			"CHECK (kind BETWEEN 1 AND 4)",
		}},
		test(schemaTests, "TestHeldRowsSayHow", "SET kind = 1: got <nil>, want SQLSTATE 23514"),
	},
}
