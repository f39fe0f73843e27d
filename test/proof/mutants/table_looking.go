package mutants

// looking are about what people are told: searches, explanations, checks, and what reaches their terminal.
var looking = []mutant{
	{
		"filter-includes-its-bound",
		"attempts:>3 finds events with three attempts", "OP-2",
		[]change{{operatorTests + "/filter.go", "count.Least = int(n) + 1", "count.Least = int(n)"}},
		test(operatorTests, "TestParseFilter", `"attempts:>3": got`),
	},
	{
		"filter-turned-around",
		"created:>1h finds what is younger than an hour", "OP-2",
		[]change{{operatorTests + "/filter.go", "p.Beyond, err = parseAge", "p.Within, err = parseAge"}},
		test(operatorTests, "TestParseFilter", `"created:>1h30m": got`),
	},
	{
		"filter-term-ignored",
		"a search does not look at the tenant that was asked for", "OP-2",
		[]change{{
			operatorTests + "/events.go",
			"f.AggregateID, f.Tenant, f.Namespace, f.stateNumbers()",
			`f.AggregateID, "", f.Namespace, f.stateNumbers()`,
		}},
		test(operatorTests, "TestEventsByEveryField", `tenant:nobody: got "discarded`),
	},
	{
		"window-unstated",
		"a search that ended at its window says that it looked at everything", "OP-2",
		[]change{{
			operatorTests + "/events.go",
			"w.Complete = w.Looked < s.most",
			"w.Complete = w.Looked <= s.most",
		}},
		test(operatorTests, "TestEventsPageByPage", `Window:{By:newest Looked:8 .* Complete:true}`),
	},
	{
		"late-commit-untold",
		"a tail does not show an event whose transaction began before the last look", "A15",
		[]change{{
			operatorTests + "/tail.go", "if _, told := t.known[event.ID]; told {",
			"if _, told := t.known[event.ID]; told || !first && " +
				"event.CreatedAt.Before(t.filter.since.Add(tailSlack)) {",
		}},
		test(operatorTests, "TestTailShowsWhatCommitsLate", `look 2 shows "", want "late"`),
	},
	{
		"writer-of-another-table",
		"explain names a transaction that writes no event as the one that is not committed", "A17",
		[]change{{
			operatorTests + "/sql/writers.sql",
			"AND r.relation = $1::text::regclass AND",
			"AND r.relation <> 0::oid AND $1::text <> '' AND",
		}},
		test(operatorTests, "TestExplainNamesNoOtherTransaction", `is the writer, and it says .*pid .*pid `),
	},
	{
		"second-cause-left-out",
		"explain names one cause of several, and people who end it wait on", "OP-2",
		[]change{{
			operatorTests + "/causes.go",
			"keeps := slices.ContainsFunc(causes, func(c Cause) bool { return c.Keeps })",
			"causes = causes[:min(1, len(causes))]\n\tkeeps := slices.ContainsFunc(causes, func(c Cause) " +
				"bool { return c.Keeps })",
		}},
		test(operatorTests, "TestCausesOfFacts", `two at once: the causes are \["paused_topic"\]`),
	},
	{
		"pruned-called-published",
		"explain says of an event that is gone that it is published, which nobody knows", "OP-2",
		[]change{{
			operatorTests + "/causes.go",
			"Code: CausePruned, Says:",
			"Code: CausePublished, Says:",
		}},
		test(operatorTests, "TestCausesOfFacts", `older than what retention has deleted: the causes are \["published"\]`),
	},
	{
		"stuck-called-unheld",
		"explain says that nobody holds the lane of a relay that lives and does not move", "OP-2",
		[]change{{
			operatorTests + "/causes.go",
			"if f.holder.Alive || len(f.alive) == 0 ||",
			"if len(f.alive) == 0 ||",
		}},
		test(operatorTests, "TestCausesOfFacts", `nothing keeps it, and it waits: the causes are \["lane_unheld"\]`),
	},
	{
		"privilege-unmissed",
		"grants --check and doctor find that a role has every right of its part", "D7",
		[]change{{operatorTests + "/grants.go", "if !has {\n\t\t\tmissing", "if !has && place < 1 {\n\t\t\tmissing"}},
		test(operatorTests, "TestGrants", "an operator is a relay"),
	},
	{
		"viewer-reads-payloads",
		"who may only look may read what is in the events", "A24",
		[]change{{
			"schema/outbox/00012_access.sql",
			"'SELECT (seq, id, created_at, published_at, attempt_count, lane, state, namespace, event_type, '",
			"'SELECT (payload_json, headers, dedupe_key, seq, id, created_at, published_at, attempt_count, " +
				"lane, state, namespace, event_type, '",
		}},
		test(operatorTests, "TestEventsByEveryField", `<nil>, want "may not read payloads"`),
	},
	{
		"limit-turned-around",
		"check warns of a number that is below its limit", "OP-2",
		[]change{{
			checkTests + "/check.go",
			"return limit != None && c.Value > limit",
			"return limit != None && c.Value < limit",
		}},
		test(checkTests, "TestLimits", `above both: ok, want critical`),
	},
	{
		"table-speaks-to-the-terminal",
		"control characters of an event reach the terminal in a table", "S-4",
		[]change{
			{presentTests + "/present.go", "text = clean.Line(text)", "text = text + clean.Line(\"\")"},
			{
				presentTests + "/present.go",
				"text = clean.Line(column.Of(rows[line-1]))",
				"text = column.Of(rows[line-1])",
			},
		},
		test(presentTests, "TestList", `(?s)table: got.*b\\x1b\[2J`),
	},
	{
		"json-speaks-to-the-terminal",
		"control characters that JSON lets pass reach the terminal", "S-4",
		[]change{{
			presentTests + "/present.go",
			`!unicode.IsControl(r) && !unicode.Is(unicode.Cf, r)`,
			`unicode.IsPrint(r) || r > unicode.MaxASCII`,
		}},
		test(presentTests, "TestList", `(?s)ndjson: got.*\\u202e`),
	},
	{
		"errors-speak-to-the-terminal",
		"control characters of an error reach the terminal", "S-4",
		[]change{{
			commandTests + "/root.go",
			"clean.Writer(stdout), clean.Writer(stderr)",
			"clean.Writer(stdout), stderr",
		}},
		test(commandTests, "TestErrorsSpeakToNoTerminal", `--database-url-file: exit code 2, ".*\\x1b\[31mred`),
	},
	{
		"colours-unasked",
		"NO_COLOR is not looked at", "OP-2",
		[]change{{commandTests + "/root.go", `ok && c.getenv("NO_COLOR") == "" && `, "ok && "}},
		test(commandTests, "TestColors", `NO_COLOR: colours are true`),
	},
	{
		"not-found-like-failed",
		"what is not there has the exit code of a failure", "OP-2",
		[]change{{
			commandTests + "/problem.go",
			`problem{code: "not_found", exit: exitNotFound,`,
			`problem{code: "not_found", exit: exitFailed,`,
		}},
		test(commandTests, "TestWhatIsNotThereExitsWith3", `aggregate show order/77: exit code 1`),
	},
	{
		"password-in-an-error",
		"a database URL that cannot be read is quoted, with its password", "S-4",
		[]change{{
			commandTests + "/database.go",
			`"the database URL cannot be read: it is`,
			`"the database URL cannot be read: " + address + " is not: it is`,
		}},
		test(commandTests, "TestPasswordsAreNotPrinted", `outboxctl: the database URL cannot be read: .*s3cr3t`),
	},
	{
		"export-cut-off",
		"an export ends after its first page, and says that this was all", "OP-2",
		[]change{{
			commandTests + "/events_export.go",
			`if page.After = found.Next; page.After == ""`,
			`if page.After = ""; page.After == ""`,
		}},
		test(commandTests, "TestExportIsWhole", `--count 0: exit code 0, 100 of 120 events`),
	},
	{
		"export-ends-untold",
		"an export that ends at its count does not say that there is more", "OP-2",
		[]change{{
			commandTests + "/events_export.go",
			"end := \"\"\n\tif page.After != \"\" {",
			"end := \"\"\n\tif page.After == \"-\" {",
		}},
		test(commandTests, "TestExportIsWhole", `--count 7: exit code 0, 7 of 7 events`),
	},
}
