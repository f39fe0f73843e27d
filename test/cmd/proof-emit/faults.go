package main

import "github.com/posthaste-dev/posthaste/test/kit/corpus"

// compileTest shows that a pool is not taken for a transaction.
const compileTest = "TestCompilerRejectsPools"

// otherPackages are packages besides test/suite/emit of which some tests show a fault.
var otherPackages = map[string]string{
	"drivers": repository + "test/suite/drivers", "pgstore": repository + "relay/internal/pgstore",
	"relay": repository + "test/suite/relay", "schema": repository + "test/suite/schema",
}

// fault is a row of the fault model's part about the application's transaction and emit.
type fault struct {
	id     string
	what   string
	tests  []string // that show it, each on every server
	anyway []string // that show it and need no server
	later  string   // where it will be shown, because it needs more than a producer and PostgreSQL
	more   string   // what will show more of it than its tests do
	// maySkip: the machine may be unable to run it. The reason is printed.
	maySkip bool
}

var faults = []fault{
	{id: "A1", what: "crash before COMMIT is sent", tests: []string{"emit.TestFaultA1CrashBeforeCommit"}},
	{id: "A2", what: "connection lost between COMMIT and its answer", tests: []string{"emit.TestFaultA2UnknownOutcome"}},
	{
		id: "A3", what: "whole transaction retried after that", tests: []string{"emit.TestFaultA3RetryOfTheWholeTransaction"},
	},
	{
		id: "A4", what: "same dedupe key, other payload",
		tests: []string{"emit.TestFaultA4SameKeyOtherPayload", "emit.TestDedupe"},
	},
	{
		id: "A5", what: "two at once with one key, the first rolls back",
		tests: []string{"emit.TestFaultA5FirstOfTwoRollsBack", "emit.TestDedupeRace"},
	},
	{id: "A6", what: "the same above READ COMMITTED", tests: []string{"emit.TestFaultA6HigherIsolation"}},
	{
		id: "A7", what: "deadlock on dedupe keys",
		tests: []string{"emit.TestFaultA7NoDeadlockWithinOneCall", "emit.TestFaultA7DeadlockAcrossCalls"},
	},
	{id: "A8", what: "emit outside a transaction", anyway: []string{"drivers." + compileTest}},
	{
		id: "A9", what: "error of emit ignored",
		tests: []string{"emit.TestFaultA9ErrorIgnored", "emit.TestFaultA9NothingIgnored"},
	},
	{id: "A10", what: "savepoint around emit rolled back", tests: []string{"emit.TestFaultA10SavepointRolledBack"}},
	{id: "A11", what: "payload beyond its limit", tests: []string{"emit.TestFaultA11PayloadTooLarge"}},
	{
		id: "A12", what: "NUL, broken text, depth, huge numbers",
		tests: []string{"emit.TestFaultA12HostileDocuments", "emit.TestCorpus", "emit.TestCorpusInSQL"},
	},
	{
		id: "A13", what: "payload null, empty string, array",
		tests: []string{"emit.TestFaultA13NoObject", "emit.TestRawInserts"},
	},
	{id: "A14", what: "clock of the application's host is wrong", later: "relay simulation, with skewed clocks"},
	{id: "A15", what: "gaps, and a lower number visible later", tests: []string{"pgstore.TestTheCursorKeepsTheOrder"}},
	{id: "A16", what: "sequence with CACHE above 1", tests: []string{"emit.TestFaultA16SequenceCache"}},
	{id: "A17", what: "producer's transaction open for hours", later: "retention, against an open transaction"},
	{id: "A18", what: "prepared transaction left dangling", tests: []string{"emit.TestFaultA18PreparedTransaction"}},
	{
		id: "A19", what: "application commits with synchronous_commit=off",
		tests: []string{"pgstore.TestTheBarrierIsACommit"},
	},
	{id: "A20", what: "disk full", tests: []string{"emit.TestFaultA20DiskFull"}, maySkip: true},
	{id: "A21", what: "connection pool exhausted", tests: []string{"emit.TestFaultA21PoolExhausted"}},
	{
		id: "A22", what: "PgBouncer in transaction mode",
		tests: []string{"emit.TestFaultA22PgBouncer/exec", "emit.TestFaultA22PgBouncer/simple_protocol"},
	},
	{id: "A23", what: "schema older than the code", more: "matrix of mixed versions", tests: []string{
		"relay.TestASchemaThatDoesNotFitIsRejected", "schema.TestTheSchemaSaysItsVersion",
	}},
	{id: "A24", what: "tenant missing or spoofed", tests: []string{
		"emit.TestFaultA24TenantMissingOrSpoofed", "emit.TestFaultA24OthersAreNotBound",
		"emit.TestFaultA24ContractRequiresTenant",
	}},
}

// groups are the groups of hostile inputs that concern emit.
var groups = corpus.Groups

// The least that must have been tried.
const (
	minServers = 2
	minInputs  = 200
	minGroup   = 10
	minPairs   = 200
	minRounds  = 200
	minMutants = 10
)
