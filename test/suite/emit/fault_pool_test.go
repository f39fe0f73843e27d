package emit

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/corpus"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

// emitEverything runs every form of emit in one transaction of this pool.
func (p env) emitEverything(ctx context.Context, pool *pgxpool.Pool) error {
	return outbox.InTx(ctx, pool, func(ctx context.Context, tx pgx.Tx) error {
		if err := p.order(ctx, tx, "1"); err != nil {
			return err
		}
		for _, all := range [][]corpus.Given{
			{corpus.OrderCreated(`{"n":1}`)},
			{corpus.OrderCreated(`{"n":2}`), corpus.OrderCreated(`{"n":3}`)},
			{corpus.OrderCreated(`{"n":4}`).WithKey("one")},
			{
				corpus.OrderCreated(`{"n":4}`).WithKey("one"), corpus.OrderCreated(`{"n":5}`).WithKey("two"),
				corpus.OrderCreated(`{"n":6}`),
			},
		} {
			if _, err := corpus.Emit(ctx, tx, p.Schema, all); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestFaultA21PoolExhausted(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		config, err := pgxpool.ParseConfig(p.URL)
		if err != nil {
			t.Fatal(err)
		}
		config.MaxConns = 1
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		// An emit that wanted a second connection would wait forever; the deadline makes that an error.
		ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
		defer cancel()
		if err := p.emitEverything(ctx, pool); err != nil {
			t.Error(err)
		}
		p.wantRows(t, 1, 6, 2)
		if n := pool.Stat().NewConnsCount(); n != 1 {
			t.Errorf("%d connections were opened", n)
		}
	})
}

// bouncers lead to the servers through PgBouncer in transaction mode.
func bouncers() map[string]string {
	servers := pgtest.Servers()
	return map[string]string{servers[0].Name: services.PgBouncer18(), servers[1].Name: services.PgBouncer15()}
}

func TestFaultA22PgBouncer(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, p env) {
				config, err := pgxpool.ParseConfig(bouncers()[p.Name])
				if err != nil {
					t.Fatal(err)
				}
				config.ConnConfig.DefaultQueryExecMode = mode
				config.ConnConfig.Tracer = statementCounter{}
				config.MaxConns = 40
				bouncer, err := pgxpool.NewWithConfig(t.Context(), config)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(bouncer.Close)
				if err := p.emitEverything(t.Context(), bouncer); err != nil {
					t.Fatal(err)
				}
				p.wantRows(t, 1, 6, 2)
				through := env{DB: p.DB, pool: bouncer}
				for _, problem := range checkDedupe(t.Context(), through, corpus.Emit) {
					t.Error(problem)
				}
				// Every kind of hostile input: what one mode quotes by hand, another sends as it is.
				through.inCorpus(t, corpus.Emit, 100, "utf8/", "identifiers/", "envelope/")
			})
		})
	}
}
