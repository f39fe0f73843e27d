package main

import (
	"context"
	"embed"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

//go:embed sql/*.sql
var statements embed.FS

// statement reads one of ours, with the outbox's schema named in it.
func statement(name, schema string) string {
	text, _ := statements.ReadFile("sql/" + name + ".sql") // embedded
	return strings.ReplaceAll(strings.TrimSpace(string(text)), "{schema}", schema)
}

const (
	// outboxSchema holds the outbox of all subjects but the scratch copies.
	outboxSchema = outbox.DefaultSchema
	accounts     = 10_000
	fillerBytes  = 200
	seed         = 20_260_101 // any number, as long as it stays the same
)

// env is what the transactions work on: a database, and the numbers they draw from.
type env struct {
	db *bench.Database
	// accountIDs are the aggregates; draws points at them as often as they are used.
	accountIDs []string
	draws      []int32
	// fillers are incompressible texts, made beforehand so that making them is nobody's latency.
	fillers []string
}

// newEnv makes the tables, fills each with this many rows, and leaves them vacuumed.
func newEnv(ctx context.Context, db *bench.Database, zipf float64, rows int) (*env, error) {
	w := &env{db: db}
	w.draw(zipf)
	if err := db.Exec(ctx, statement("tables", "")); err != nil {
		return nil, err
	}
	ids := make([][]any, len(w.accountIDs))
	for i, id := range w.accountIDs {
		ids[i] = []any{id}
	}
	if _, err := db.Control.CopyFrom(ctx, pgx.Identifier{"bench", "account"}, []string{"id"},
		pgx.CopyFromRows(ids)); err != nil {
		return nil, fmt.Errorf("fill accounts: %w", err)
	}
	if _, err := db.Control.Exec(ctx, statement("fill_orders", ""), rows, accounts); err != nil {
		return nil, fmt.Errorf("fill orders: %w", err)
	}
	if _, err := db.Control.Exec(ctx, statement("fill_payloads", ""), rows); err != nil {
		return nil, fmt.Errorf("fill payloads: %w", err)
	}
	if err := w.install(ctx, outboxSchema, rows); err != nil {
		return nil, err
	}
	return w, db.Exec(ctx, "VACUUM ANALYZE")
}

// draw makes everything that is random, from one seed.
func (w *env) draw(zipf float64) {
	random := rand.New(rand.NewPCG(seed, 0))
	for range accounts {
		w.accountIDs = append(w.accountIDs, uuidText(random))
	}
	next := func() uint64 { return random.Uint64N(accounts) }
	if zipf > 1 {
		next = rand.NewZipf(random, zipf, 1, accounts-1).Uint64
	}
	for range 1 << 16 {
		w.draws = append(w.draws, int32(next()))
	}
	for range 1 << 10 {
		w.fillers = append(w.fillers, randomHex(random, fillerBytes/2))
	}
}

func uuidText(random *rand.Rand) string {
	digits := randomHex(random, 16)
	return digits[:8] + "-" + digits[8:12] + "-4" + digits[13:16] + "-a" + digits[17:20] + "-" + digits[20:]
}

func randomHex(random *rand.Rand, bytes int) string {
	raw := make([]byte, bytes)
	for i := range raw {
		raw[i] = byte(random.Uint32())
	}
	return hex.EncodeToString(raw)
}

// install makes an outbox in a schema of its own, with published events in it.
func (w *env) install(ctx context.Context, name string, rows int) error {
	config, err := w.db.Config("bench-migrate")
	if err != nil {
		return err
	}
	std := stdlib.OpenDB(*config)
	defer std.Close()
	if err := schema.Outbox.Up(ctx, std, schema.Options{Schema: name}); err != nil {
		return err
	}
	for _, table := range []string{"outbox_events", "outbox_dedupe"} {
		if err := w.db.Exec(ctx, fmt.Sprintf("ALTER TABLE %s.%s SET (autovacuum_enabled = off)", name, table)); err != nil {
			return err
		}
	}
	if _, err := w.db.Control.Exec(ctx, statement("fill_events", name), rows, accounts); err != nil {
		return fmt.Errorf("fill %s: %w", name, err)
	}
	return nil
}
