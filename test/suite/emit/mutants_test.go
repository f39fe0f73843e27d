package emit

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/corpus"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// mutant is a bug, and the check that must find it.
type mutant struct {
	name  string
	emit  corpus.Emitter            // a faulty copy of the library; defaults to the library
	apply func(t *testing.T, p env) // a fault in the database's part
	check func(p env, emit corpus.Emitter) []string
	finds string // part of one of the problems that the check must report
}

func corpusOf(ctx context.Context, prefixes ...string) func(p env, emit corpus.Emitter) []string {
	var chosen []corpus.Input
	for _, in := range corpus.All() {
		for _, prefix := range prefixes {
			if strings.HasPrefix(in.Name, prefix) {
				chosen = append(chosen, in)
			}
		}
	}
	return func(p env, emit corpus.Emitter) []string { return checkCorpus(ctx, p, emit, chosen).Problems }
}

func mutants(ctx context.Context) []mutant {
	dedupe := func(p env, emit corpus.Emitter) []string { return checkDedupe(ctx, p, emit) }
	pairs := func(p env, emit corpus.Emitter) []string { return checkPairs(ctx, p, emit, 24).Problems }
	orders := func(p env, emit corpus.Emitter) []string {
		deadlocks, problems := checkOrders(ctx, p, emit, 2000)
		if deadlocks > 0 {
			problems = append(problems, "deadlock")
		}
		return problems
	}
	return []mutant{
		{
			name: "payload through jsonb", check: corpusOf(ctx, "json/"),
			finds: "json/same key twice: event 0: payload_json came back as",
			emit:  rewritten(func(sql string) string { return strings.ReplaceAll(sql, "::json", "::jsonb::json") }),
		},
		{name: "DO NOTHING and SELECT", check: pairs, finds: "cannot scan NULL", emit: doNothing},
		{
			name: "DO NOTHING in the statement", check: dedupe, finds: "second emit",
			emit: rewritten(func(sql string) string {
				return strings.ReplaceAll(sql, "DO UPDATE SET repeated = true", "DO NOTHING")
			}),
		},
		{
			name: "DO NOTHING in the function", check: dedupe, finds: "a batch with one used key",
			apply: inFunction("outbox_emit_deduped", "DO UPDATE SET repeated = true", "DO NOTHING"),
		},
		{
			name: "dedupe without tenant", check: dedupe, finds: "the same key of a tenant: want a new event",
			emit: rewritten(func(sql string) string { return strings.ReplaceAll(sql, "coalesce($6::text, '')", "''") }),
		},
		{
			name: "created told by the event's id", check: dedupe, finds: "retry with the same id: want the first event's id",
			emit: rewritten(func(sql string) string {
				return strings.ReplaceAll(sql, "NOT k.repeated", "k.event_id = $1::text::uuid")
			}),
		},
		{
			name: "hash over the envelope", check: dedupe, finds: "retry with another time, actor and header",
			emit: hashOfEnvelope,
		},
		{
			name: "mismatch reported as already enqueued", check: dedupe, finds: "another payload: want ErrDedupeMismatch",
			emit: swallowMismatch,
		},
		{
			name: "batch mismatch that leaves half of the batch", check: dedupe,
			finds: "a batch with one used key: 2 events were inserted", emit: notAllOrNone,
		},
		{
			name: "batch mismatch that leaves keys behind", check: dedupe, finds: "dedupe keys stand for no event",
			emit: notAllOrNone,
			apply: inFunction("outbox_emit_deduped", "c.verdict = '+' ORDER",
				"c.verdict = '+' AND NOT EXISTS (SELECT FROM checked x WHERE x.verdict = '!') ORDER"),
		},
		{
			name: "keys not sorted", check: orders, finds: "deadlock",
			apply: inFunction("outbox_emit_deduped", "ORDER BY g.namespace, g.event_type, g.key_tenant, g.dedupe_key", ""),
		},
		{
			name: "headers not checked", check: corpusOf(ctx, "broker/"), finds: "broker/header CC: was accepted",
			emit: headersUnchecked,
		},
		{
			name: "aggregate ids not checked", check: corpusOf(ctx, "utf8/"),
			finds: "utf8/next-line control in an aggregate id: was accepted", emit: aggregateUnchecked,
		},
		{
			name: "data not checked", check: corpusOf(ctx, "utf8/"), finds: "utf8/low surrogate alone: was accepted",
			emit: dataUnchecked,
		},
		{
			name: "the lane of another aggregate", check: corpusOf(ctx, "envelope/"),
			finds: "envelope/data that is empty: event 0: stored in another lane",
			emit: rewritten(func(sql string) string {
				return strings.ReplaceAll(sql, "outbox_lane($2::text, $4::text", "outbox_lane($2::text, $3::text")
			}),
		},
		{
			name: "a rule that the library does not know", check: corpusOf(ctx, "identifiers/"),
			finds: "what was stored breaks a rule",
			apply: inFunction("outbox_check_event", "octet_length(aggregate_id) NOT BETWEEN 1 AND 512",
				"octet_length(aggregate_id) NOT BETWEEN 1 AND 5"),
		},
		{
			name: "refusal that repeats the value", check: corpusOf(ctx, "utf8/"), finds: "the refusal repeats the value",
			emit: talkative,
		},
		{name: "panic", check: corpusOf(ctx, "time/"), finds: "time/year 0: panicked", emit: panicking},
	}
}

func TestMutantsAreFound(t *testing.T) {
	t.Parallel()
	for _, bug := range mutants(t.Context()) {
		t.Run(bug.name, func(t *testing.T) {
			t.Parallel()
			// One server: what is tested here are the checks.
			p := newEnv(t, pgtest.New(t, pgtest.Servers()[0]))
			emit := bug.emit
			if emit == nil {
				emit = corpus.Emit
			}
			if bug.apply != nil {
				bug.apply(t, p)
			}
			problems := strings.Join(bug.check(p, emit), "\n")
			if !strings.Contains(problems, bug.finds) {
				t.Fatalf("the bug was not found; want %q in:\n%.2000s", bug.finds, problems)
			}
			figure(t, "mutants_found", 1)
		})
	}
}

// inFunction changes a function of the schema.
func inFunction(name, from, to string) func(t *testing.T, p env) {
	return func(t *testing.T, p env) {
		t.Helper()
		var definition string
		err := p.pool.QueryRow(t.Context(),
			"SELECT pg_get_functiondef(oid) FROM pg_proc WHERE proname = $1 AND pronamespace = $2::text::regnamespace",
			name, p.Schema).Scan(&definition)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(definition, from) != 1 {
			t.Fatalf("%s does not have %q once", name, from)
		}
		if _, err := p.pool.Exec(t.Context(), strings.Replace(definition, from, to, 1)); err != nil {
			t.Fatal(err)
		}
	}
}

// changed is the library with another statement.
func changed(change func(stmt *outbox.Stmt, all []corpus.Given)) corpus.Emitter {
	return func(ctx context.Context, tx pgx.Tx, schema string, all []corpus.Given) ([]outbox.Receipt, error) {
		stmt, err := outbox.Statement(schema, corpus.Events(all)...)
		if err != nil {
			return nil, err
		}
		change(stmt, all)
		var answer string
		if err := tx.QueryRow(ctx, stmt.SQL, stmt.Args...).Scan(&answer); err != nil {
			return nil, err
		}
		return stmt.Receipts(answer)
	}
}

func rewritten(rewrite func(sql string) string) corpus.Emitter {
	return changed(func(stmt *outbox.Stmt, _ []corpus.Given) { stmt.SQL = rewrite(stmt.SQL) })
}

var notAllOrNone = rewritten(func(sql string) string {
	return strings.ReplaceAll(sql, "outbox_emit_all_or_none", "outbox_emit_deduped")
})

// doNothing is the form that every tutorial has. The loser of a race waits for the winner and then looks
// with a snapshot from before: it finds nothing.
func doNothing(ctx context.Context, tx pgx.Tx, schema string, all []corpus.Given) ([]outbox.Receipt, error) {
	g, mine := all[0], outbox.NewID()
	var found string
	err := tx.QueryRow(ctx, strings.ReplaceAll(`WITH keyed AS (
		INSERT INTO {schema}.outbox_dedupe (event_id, namespace, event_type, tenant_id, dedupe_key, content_hash)
		VALUES ($1::text::uuid, 'default', $2::text, '', $3::text, '') ON CONFLICT DO NOTHING RETURNING event_id
	), inserted AS (
		INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, dedupe_key, payload_json)
		SELECT event_id, $2::text, $4::text, $5::text, $3::text, $6::text::json FROM keyed
	)
	SELECT coalesce((SELECT event_id FROM keyed), 
	(SELECT event_id FROM {schema}.outbox_dedupe WHERE dedupe_key = $3::text))::text`,
		"{schema}", `"`+schema+`"`), mine.String(), g.Contract.Type, g.Key, g.Contract.Aggregate, g.AggregateID,
		g.Envelope(mine.String())).Scan(&found)
	if err != nil {
		return nil, err
	}
	id, err := outbox.ParseID(found)
	return []outbox.Receipt{{ID: id, Created: id == mine}}, err
}

func swallowMismatch(ctx context.Context, tx pgx.Tx, schema string, all []corpus.Given) ([]outbox.Receipt, error) {
	receipts, err := corpus.Emit(ctx, tx, schema, all)
	if err != nil {
		return make([]outbox.Receipt, len(all)), nil //nolint:nilerr // the bug
	}
	return receipts, nil
}

// hashOfEnvelope makes the content depend on what differs on every try.
var hashOfEnvelope = changed(func(stmt *outbox.Stmt, all []corpus.Given) {
	for i, g := range all {
		if g.Key != "" && len(all) == 1 {
			stmt.Args[7] = fmt.Sprintf(`{"\\x%x"}`, g.Envelope(fmt.Sprint(i)))
		}
	}
})

// unchecked hides a field from the library's checks and puts it into the statement behind them.
func unchecked(hide func(g *corpus.Given), argument int, value func(g corpus.Given) any) corpus.Emitter {
	return func(ctx context.Context, tx pgx.Tx, schema string, all []corpus.Given) ([]outbox.Receipt, error) {
		if len(all) != 1 || all[0].Key != "" {
			return corpus.Emit(ctx, tx, schema, all)
		}
		hidden := all[0]
		hide(&hidden)
		emit := changed(func(stmt *outbox.Stmt, _ []corpus.Given) { stmt.Args[argument] = value(all[0]) })
		return emit(ctx, tx, schema, []corpus.Given{hidden})
	}
}

var headersUnchecked = unchecked(func(g *corpus.Given) { g.Headers = nil }, 7, func(g corpus.Given) any {
	return corpus.JSONOrNull(g.Headers != nil, g.Headers)
})

var aggregateUnchecked = unchecked(func(g *corpus.Given) { g.AggregateID = "x" }, 4, func(g corpus.Given) any {
	return g.AggregateID
})

// dataUnchecked puts the data into the envelope of an event that has none.
var dataUnchecked = unchecked(func(g *corpus.Given) { g.Payload = json.RawMessage("{}"); g.ID = uncheckedID }, 6,
	func(g corpus.Given) any { return g.Envelope(uncheckedID.String()) })

var uncheckedID = outbox.NewID()

func talkative(ctx context.Context, tx pgx.Tx, schema string, all []corpus.Given) ([]outbox.Receipt, error) {
	receipts, err := corpus.Emit(ctx, tx, schema, all)
	if err != nil {
		data, _ := all[0].Payload.(json.RawMessage)
		return nil, fmt.Errorf("%w: %s", err, data)
	}
	return receipts, nil
}

func panicking(ctx context.Context, tx pgx.Tx, schema string, all []corpus.Given) ([]outbox.Receipt, error) {
	if all[0].At.Year() < 1 {
		panic("year")
	}
	return corpus.Emit(ctx, tx, schema, all)
}
