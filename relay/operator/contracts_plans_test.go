package operator

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
)

// PlanOfContracts is the plan of one of the statements that look at contracts.
func (o *Operator) PlanOfContracts(ctx context.Context, statement string, args ...any) (plan string, err error) {
	err = o.look(ctx, "plan", func(l *looking) error {
		if _, err := l.Exec(ctx, l.sql("look_in_order")); err != nil {
			return err
		}
		content := "NULL::text AS dedupe_key, NULL::text AS headers, NULL::text AS payload"
		rows, err := l.Query(ctx, "EXPLAIN (COSTS OFF) "+l.sql(statement, "{ready}", content, "{held}", content),
			append([]any{pgx.QueryExecModeExec}, args...)...)
		if err != nil {
			return err
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		plan = strings.Join(lines, "\n")
		return err
	})
	return plan, err
}
