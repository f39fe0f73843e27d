// Package emit shows what the emit side does when things go wrong: a test for each fault between the
// application's transaction and PostgreSQL, a corpus of hostile inputs, and races for one dedupe key.
// It also shows what the registry, the doorbell and the assertions of outboxtest do with a real database.
// `make proof-emit` runs it and adds up the figures that the tests report as attributes.
//
// The checks that count are functions over an emitter, so that faulty copies of the emit side can be
// put in its place: mutants_test.go shows that each check finds the bug it is there for.
package emit
