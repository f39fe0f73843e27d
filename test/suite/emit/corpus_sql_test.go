package emit

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/corpus"
)

// checkSQL asks outbox_emit about every input that can be said in SQL: it must accept what the library
// accepts and store the same, and refuse what the library refuses.
func checkSQL(ctx context.Context, p env, inputs []corpus.Input) *tally {
	result := &tally{}
	for _, in := range inputs {
		result.Inputs++
		if in.OnlyGo != "" {
			result.SQLNotAsked++
			continue
		}
		if err := result.trySQL(ctx, p, in); err != nil {
			result.failf(in, "%v", err)
		}
	}
	return result
}

func (c *tally) trySQL(ctx context.Context, p env, in corpus.Input) error {
	tx, err := p.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if err := p.order(ctx, tx, in.Name); err != nil {
		return err
	}
	all := in.Events()
	receipts, asked := inSavepoint(ctx, tx, p.Schema, all)
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("the transaction could not commit: %w", err)
	}
	agreed := (asked == nil) == (in.Rejected == "")
	switch {
	case asked != nil && !clearlyRejected(asked):
		return fmt.Errorf("failed, and not as a refusal: %w", asked)
	case !agreed && in.SQLDiffers == "" && asked != nil:
		return fmt.Errorf("the library stores it and outbox_emit refuses: %w", asked)
	case !agreed && in.SQLDiffers == "":
		return errors.New("the library refuses it and outbox_emit stores it")
	case in.SQLDiffers != "":
		c.SQLDiffers++
		return nil
	case asked == nil:
		if err := p.readBack(ctx, p.pool, all[0], receipts[0].ID.String()); err != nil {
			return err
		}
	}
	c.SQLAgreed++
	return nil
}

func inSavepoint(ctx context.Context, tx pgx.Tx, schema string, all []corpus.Given) ([]outbox.Receipt, error) {
	savepoint, err := tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	receipts, err := corpus.EmitSQL(ctx, savepoint, schema, all)
	if err != nil {
		return nil, errors.Join(err, savepoint.Rollback(ctx))
	}
	return receipts, savepoint.Commit(ctx)
}

// clearlyRejected tells a refusal from an accident: data that PostgreSQL cannot take (class 22), a
// constraint (class 23), or a document too deep for the server's stack.
func clearlyRejected(err error) bool {
	var state interface{ SQLState() string }
	if !errors.As(err, &state) {
		return false
	}
	class := state.SQLState()[:2]
	return class == "22" || class == "23" || class == "54"
}

func TestCorpusInSQL(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		result := checkSQL(t.Context(), p, corpus.All())
		for _, problem := range result.Problems {
			t.Error(problem)
		}
		figure(t, "sql_inputs", result.Inputs-result.SQLNotAsked)
		figure(t, "sql_agreed", result.SQLAgreed)
		figure(t, "sql_differs", result.SQLDiffers)
	})
}
