package doctor

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/relay/internal/sqltext"
)

// hot are the statements whose plans count.
var hot = []struct{ file, what, types, args, index string }{
	{"hot_read", "the relay's read", "smallint[], bigint[]", "'{1,2,3}', '{0,0,0}'", "outbox_events_pkey"},
	{"hot_settle", "the relay's settle", "smallint[], bigint[]", "'{1,2,3}', '{1,2,3}'", "outbox_events_pkey"},
	{
		"hot_event", "the look-up of an event", "uuid", "'00000000-0000-7000-8000-000000000000'", "outbox_events_id",
	},
}

// grown is from how many pages on a plan counts: up to there reading all of a table is quick, and no fault.
const grown = 1000

// What a plan does with the events: it reads all of them, or those that an index names, directly or by a bitmap.
var (
	readsAll   = regexp.MustCompile(`Seq Scan on outbox_events\b`)
	readsIndex = regexp.MustCompile(`Index (?:Only )?Scan (?:Backward )?(?:using|on) ("[^"]*"|\S+)`)
)

// badPlan tells whether a plan reads all events, or by another index than this. A bitmap of the right one is no fault:
// it is what there is until the table is analysed for the first time.
func badPlan(plan, index string) bool {
	used := readsIndex.FindAllStringSubmatch(plan, -1)
	return readsAll.MatchString(plan) || len(used) == 0 ||
		slices.ContainsFunc(used, func(match []string) bool { return match[1] != index })
}

// checkPlans has the hot statements planned as they are when they are prepared.
func (x *examination) checkPlans(ctx context.Context) error {
	var pages int64
	if err := x.row(ctx, `SELECT coalesce(pg_catalog.pg_relation_size(pg_catalog.to_regclass($1::text)), 0) /
		pg_catalog.current_setting('block_size')::bigint`, []any{x.name("outbox_events")}, []any{&pages}); err != nil {
		return err
	}
	if pages < grown {
		return nil
	}
	for _, statement := range hot {
		if x.noPlan[statement.index] {
			continue
		}
		text, err := files.ReadFile("sql/" + statement.file + ".sql")
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		plan, err := x.plan(ctx, sqltext.In(x.Schema, string(text)), statement.types, statement.args)
		if err != nil {
			return err
		}
		if badPlan(plan, statement.index) {
			fix, err := x.planFix(ctx)
			if err != nil {
				return err
			}
			x.sqlf("plan_bad", fix, "%s does not use %s", statement.what, statement.index)
			return nil // the others have the same cause
		}
	}
	return nil
}

// plan is the generic plan of a statement. A prepared statement outlives its transaction.
func (x *examination) plan(ctx context.Context, text, types, args string) (plan string, err error) {
	const name = "posthaste_doctor"
	err = x.in(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		exec := func(statement string) error {
			_, err := tx.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol)
			return err //nolint:wrapcheck // run names the check
		}
		if err := errors.Join(exec("SET LOCAL plan_cache_mode = force_generic_plan"),
			exec("PREPARE "+name+"("+types+") AS "+text)); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, exec("DEALLOCATE "+name)) }()
		rows, err := tx.Query(ctx, "EXPLAIN (COSTS OFF) EXECUTE "+name+"("+args+")", pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			return err //nolint:wrapcheck // run names the check
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		plan = strings.Join(lines, "\n")
		return err //nolint:wrapcheck // run names the check
	})
	return plan, err
}

// planFix takes back what this database or role has changed of the planner, or counts the table anew.
func (x *examination) planFix(ctx context.Context) (string, error) {
	var name, source, database string
	var statements []string
	err := x.rows(ctx, "planner", nil, []any{&name, &source, &database}, func() {
		switch source {
		case "database":
			statements = append(statements, fmt.Sprintf("ALTER DATABASE %s RESET %s", ident(database), name))
		case "user":
			statements = append(statements, fmt.Sprintf("ALTER ROLE %s RESET %s", ident(x.role), name))
		case "database user":
			statements = append(statements, fmt.Sprintf("ALTER ROLE %s IN DATABASE %s RESET %s", ident(x.role), ident(database),
				name))
		}
	})
	if len(statements) == 0 {
		statements = []string{"ANALYZE " + x.name("outbox_events")}
	}
	return strings.Join(statements, "; "), err
}
