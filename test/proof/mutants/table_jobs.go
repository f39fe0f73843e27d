package mutants

// jobFile is where jobs are in the schema.
const jobFile = "schema/outbox/00010_jobs.sql"

// jobs are about what is done to many events, in parts.
var jobs = []mutant{
	{
		"job-passes-what-it-has-not-done",
		"a job goes on behind all that it looked at, and not behind the events of its part", "OP-5",
		[]change{{operatorTests + "/job_search.go", "upto = found[len(found)-1].Seq", "_ = found[len(found)-1].Seq"}},
		test(operatorTests, "TestCopiesAreAskedForOnce", `the job is done with [0-9]+ done`),
	},
	{
		"job-stays-where-it-was",
		"a part is done, and the job does not note how far it came: its last event is met again", "OP-5",
		[]change{{jobFile, "SET position = now_at,", "SET position = greatest(was_at, now_at - 1),"}},
		test(operatorTests, "TestCopiesAreAskedForOnce", `the job is done 1200 done [1-9][0-9]* passed`),
	},
	{
		"job-from-the-end",
		"a part has its events from the last one on", "OP-5",
		[]change{{operatorTests + "/events.go", `		order = "e.seq"` + "\n", `		order = "e.seq DESC"` + "\n"}},
		test(operatorTests, "TestAJobIsDoneOnce", `the job is done [0-9]+ done 0 passed, want done 1700`),
	},
	{
		"job-without-a-log",
		"one event of each part is changed, and the log does not have it", "OP-5",
		[]change{{
			"schema/outbox/00004_dead_letters.sql",
			"FROM (SELECT DISTINCT a.id FROM acted a) AS a",
			"FROM (SELECT DISTINCT a.id FROM acted a OFFSET 1) AS a",
		}},
		test(operatorTests, "TestAJobIsDoneOnce", `the log has 1[0-9]+ 1[0-9]+ redrive`),
	},
	{
		"job-of-two-workers",
		"a worker takes a job from another whose lease has not ended", "OP-5",
		[]change{{
			jobFile,
			"AND (j.worker = outbox_take_job.worker OR j.worker IS NULL OR j.work_until <= clock_timestamp())",
			"AND (true OR j.work_until <= clock_timestamp())",
		}},
		test(operatorTests, "TestAJobHasOneWorkerAtATime", `another worker has gone on`),
	},
	{
		"job-part-done-twice",
		"a part is done by a worker who believes that the job is where it was", "OP-5",
		[]change{{jobFile, "OR j.position IS DISTINCT FROM was_at OR", "OR"}},
		test(operatorTests, "TestAPartIsDoneOnce", `from 0 to 4 a part was done 1 times, want 0`),
	},
	{
		"job-without-a-bound",
		"a job changes more events than it may", "OP-5",
		[]change{{jobFile, "IF cardinality(events) > j.most - j.done THEN", "IF j.done > j.most THEN"}},
		test(operatorTests, "TestAJobHasABound", `the job is failed 30 done 0 passed`),
	},
	{
		"job-beyond-its-plan",
		"a job is about events that were made after its plan was shown", "OP-5",
		[]change{{jobFile, "least(outbox_start_job.last_seq, s.last_value)", "s.last_value"}},
		test(operatorTests, "TestAJobIsAboutWhatWasPlanned", `the job is about .* up to`),
	},
	{
		"job-of-what-comes",
		"a job is about events that were published after its plan was shown", "OP-5",
		[]change{{operatorTests + "/events.go", "if !s.lastAt.IsZero() && (", "if s.lastAt.IsZero() && ("}},
		test(operatorTests, "TestAJobIsAboutWhatWasPlanned", `the job is failed 5 done 0 passed`),
	},
	{
		"job-without-a-second-look",
		"an event that came behind a block while a job ended it waits for good", "OP-5",
		[]change{{
			jobFile,
			"in a transaction of its own: this one.\n    IF cardinality(j.again) > 0 THEN",
			"in a transaction of its own: this one.\n    IF false THEN",
		}},
		test(operatorTests, "TestWhatFollowsADiscardedEventGoes", `what followed is`),
	},
	{
		"job-canceled-before-its-second-look",
		"the same, where the job is canceled in between", "OP-5",
		[]change{{
			jobFile,
			"or nobody does for long.\n    IF cardinality(j.again) > 0 THEN",
			"or nobody does for long.\n    IF false THEN",
		}},
		test(operatorTests, "TestWhatFollowsGoesWhereTheJobEnds", `what followed is`),
	},
	{
		"second-look-decides",
		"the second look of a job does what its part had passed by", "OP-5",
		[]change{ // either of them is enough to keep it from that
			{"schema/outbox/00004_dead_letters.sql", "    over := followers_only;\n", "    over := false;\n"},
			{"schema/outbox/00010_jobs.sql", "            follows := changed;\n", "            follows := events;\n"},
		},
		test(operatorTests, "TestASecondLookDecidesNothing", `what was passed by became|the second look has`),
	},
	{
		"job-reissues-what-is-dead-no-more",
		"a job makes new events of what was dead when it looked, and is published or discarded by now", "OP-5",
		[]change{{
			"schema/outbox/00004_dead_letters.sql",
			"e.state IN (6, 7) AND dead_only IS FALSE",
			"e.state IN (6, 7) AND dead_only IS NOT NULL",
		}},
		test(operatorTests, "TestAJobReissuesWhatIsStillDead", `there are new events 3 of 3`),
	},
	{
		"edited-twice",
		"an edit of an event that has a new one already makes another one", "OP-5",
		[]change{{
			"schema/outbox/00004_dead_letters.sql",
			"AND (again OR NOT EXISTS (",
			"AND (again IS NOT NULL OR NOT EXISTS (",
		}},
		test(operatorTests, "TestAnEventIsIssuedAgainOnce", `edited twice: `),
	},
	{
		"job-reads-all-letters",
		"every part of a job reads all dead letters above it", "L3",
		[]change{{
			operatorTests + "/sql/job_end_dead.sql",
			"OFFSET $3::bigint - 1 LIMIT 1",
			"OFFSET $3::bigint + 9000000 LIMIT 1",
		}},
		test(operatorTests, "TestManyDeadLettersAreFoundInParts", `dead letters: [0-9]+ rows were read`),
	},
}
