package mutants

// auditing are about the comparison of broker and table, the account of the numbers, the log of what people did, and
// the events of older rows.
var auditing = []mutant{
	{
		"loss-called-old",
		"an audit takes every event that is not there for one from before the broker shows anything", "P20",
		[]change{{
			auditTests + "/compare.go", "case e.publishedAt.Before(a.comparable(own.topics)):",
			"case e.publishedAt.Before(a.report.To):",
		}},
		test(auditTests, "TestWhatDiffersIsNamed", `found \["twice [^"]*" "unknown [^"]*"\], want \["missing `),
	},
	{
		"one-topic-excuses-all",
		"an audit takes every loss for one from before the broker shows anything, where it shows nothing of one topic", "P20",
		[]change{{
			auditTests + "/compare.go", "if !a.compared(topics) {", "if len(topics) < 1_000 {",
		}},
		test(auditTests, "TestATopicThatShowsNothingExcusesItself", `found \[\], want \["missing `),
	},
	{
		"copy-for-others-replaces-the-event",
		"an audit takes a copy that went to another topic for the event itself", "P20",
		[]change{{
			auditTests + "/compare.go", "return !known || slices.Contains(own.topics, topic) }",
			"return !known || topic != \"\" }",
		}},
		test(auditTests, "TestWhatIsNoDifference", `found \[\], want \["missing `),
	},
	{
		"newest-topic-alone",
		"an audit looks for the events of a type only where the relay sends them that started last", "P20",
		[]change{{auditTests + "/topics.go", "own.add(topic)\n", "own.topics = append(own.topics, topic)[:1]\n"}},
		test(auditTests, "TestWhileATypeMoves", `the topics are \["bills" "orders-v2"\], want`),
	},
	{
		"deploy-excuses-losses",
		"an audit takes nothing for lost that was published before the relays started that are there", "P20",
		[]change{{
			auditTests + "/compare.go", "!a.compared(own.topics):",
			"(!a.compared(own.topics) || e.publishedAt.Before(own.since)):",
		}},
		test(auditTests, "TestALossBeforeADeploy", `Missing:1 `),
	},
	{
		"old-topic-forgotten",
		"an audit calls an event missing from before its type's old topic shows anything", "P20",
		[]change{{auditTests + "/topics.go", "if known && !m.Copy &&", "if known && m.Copy &&"}},
		test(auditTests, "TestWhenATypeHasMoved", `Beyond:0 `),
	},
	{
		"copy-called-twice",
		"an audit counts a copy that somebody asked for as one too many", "OP-5",
		[]change{{
			auditTests + "/compare.go", "if found.times > 1 {", "if found.times+found.copies > 1 {",
		}},
		test(auditTests, "TestWhatIsNoDifference", `found \["twice `),
	},
	{
		"pruned-without-end",
		"an audit takes every number behind the first that retention deleted for deleted by it", "R2",
		[]change{{auditTests + "/sql/explain.sql", "CASE WHEN p.last_seq >= u.seq THEN", "CASE WHEN p.last_seq > 0 THEN"}},
		test(auditTests, "TestWhyAMessageIsUnknown", `number 25: "", want "was deleted"`),
	},
	{
		"number-of-the-past",
		"an audit takes a stranger for pruned where retention once deleted an event with its number", "R2",
		[]change{{auditTests + "/compare.go", "return !message.at.After(last) ||", "return message.times > 0 ||"}},
		test(auditTests, "TestWhatIsTooYoungWasNotPruned", `now: \[\]`),
	},
	{
		"sequence-behind-unseen",
		"an audit of the sequence looks at the numbers up to where the sequence stands, and at none above", "A15",
		[]change{{auditTests + "/sequence.go", "max(highest-s.numbers.Drawn, 0)", "0"}},
		test(auditTests, "TestASequenceBehindItsTable", `got \{Drawn:3 Present:3 `),
	},
	{
		"gap-in-pieces",
		"an audit of the sequence takes a gap for two where a step of it ends", "A15",
		[]change{ // a jump takes a gap beyond its step, and what it does not reach is joined: each does alone
			{auditTests + "/sequence.go", "s.gap.Last+1 == begin {", "s.gap.Last == begin {"},
			{auditTests + "/sequence.go", "s.gap.Last != last || last == end {", "s.gap.Last != last || last <= end {"},
		},
		test(auditTests, "TestEveryNumberIsAccountedFor", `"gap 11-50000"`),
	},
	{
		"numbers-not-written-down",
		"retention deletes events and does not say which numbers went", "R2",
		[]change{{"relay/retention/walk.go", "err != nil || len(met.firsts) == 0 {", "err != nil || len(met.firsts) >= 0 {"}},
		test(retentionTests, "TestTheNumbersThatWentAreWrittenDown", `one stays: "", want "1-3:3 5-10:2"`),
	},
	{
		"ranges-joined-over-an-event",
		"retention says that it deleted up to and behind an event that stays", "R2",
		[]change{{
			"relay/retention/sql/pruned.sql", "AND e.seq > p.before AND e.seq < p.first_seq",
			"AND e.seq > p.before AND e.seq < p.before",
		}},
		test(retentionTests, "TestTheNumbersThatWentAreWrittenDown", `one stays: "1-10:5", want`),
	},
	{
		"keys-as-the-session-writes-them",
		"a backfill reads keys in the session's zone and style: rows are skipped, or have a second event", "EM-5",
		[]change{{backfillTests + "/backfill.go", `b.statement("texts", Plan{}, nil, 0)`, `"SELECT"`}},
		test(backfillTests, "TestKeysInSessionsOfEveryKind", `the key "[^"]*IST" is another one|again, in another session: `),
	},
	{
		"key-unlike-its-text",
		"a backfill goes on behind a key that its text does not give back, and skips rows", "EM-5",
		[]change{{backfillTests + "/backfill.go", `onward := read + " = q.key"`, `onward := "true"`}},
		test(backfillTests, "TestKeysThatTheirTextsDoNotTellApart", `backfill_test.go:[0-9]+: <nil>`),
	},
	{
		"log-of-everybody",
		"the log of actions shows what others did than the one who was asked for", "OP-2",
		[]change{{operatorTests + "/sql/actions.sql", "OR l.actor = $3::text)", "OR l.actor <> '')"}},
		test(operatorTests, "TestTheLogSaysWhoDidWhat", `Actor:ann .*: ann pause topic orders`),
	},
}
