package emit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

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
	if asked != nil {
		c.SQLRejections = append(c.SQLRejections, rejection(asked))
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

// rejection is the rule that an event broke: its constraint, or else the SQLSTATE and the message.
func rejection(err error) string {
	if broken, ok := errors.AsType[*pgconn.PgError](err); ok {
		return corpus.Or(broken.ConstraintName, broken.Code+" "+broken.Message)
	}
	return ""
}

// rules are all that SQL producers are held to, each by a part of its rejection. What the library writes passes none of
// them: so the corpus must have an input for each, which the library refuses as well. The rest is in TestRawInserts:
// outbox_emit checks a size and headers before the row's own rules do, and writes the envelope itself.
var rules = []string{
	"outbox_events_id_is_uuid_v7", "outbox_events_namespace", "outbox_events_event_type", "outbox_events_aggregate_type",
	"outbox_events_aggregate_id", "outbox_events_tenant_id", "outbox_events_dedupe_key", "outbox_events_tenant_owns_key",
	"22P05 ", // a NUL escape
	"22P02 ", // half of a surrogate pair, and what is no JSON
	"22021 ", // not UTF-8, or a NUL
	"data: a JSON object is required", "data: a number has more than 40 digits", "data: more than 10000 keys",
	"data: nested deeper than 64 levels", "data: the stored payload would be",
	"headers: a name must be", "is reserved", "headers: h: must be a text", "headers: 65 of them",
	"actor: an object with type and id", "actor: type, id and name must be texts",
	"version: ", "occurred_at: ",
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
		for _, rule := range rules {
			if !slices.ContainsFunc(result.SQLRejections, func(r string) bool { return strings.Contains(r, rule) }) {
				t.Errorf("no input of the corpus breaks the rule %q", rule)
			}
		}
		figure(t, "sql_inputs", result.Inputs-result.SQLNotAsked)
		figure(t, "sql_agreed", result.SQLAgreed)
		figure(t, "sql_differs", result.SQLDiffers)
	})
}
