package ops

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

// database is the run's own, with the roles of an operator and of a viewer.
type database struct {
	*bench.Outbox
	admin *pgx.Conn // to another database of the server
	pool  *pgxpool.Pool
	urls  map[string]string // by role of the outbox
	role  *pgxpool.Pool     // the operator's
}

func newDatabase(ctx context.Context, plan Plan) (_ *database, err error) {
	db := &database{urls: map[string]string{}}
	if db.Outbox, err = bench.NewOutbox(ctx, plan.URL, plan.Workers+2); err != nil {
		return nil, err
	}
	if err := db.prepare(ctx, plan); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func (db *database) prepare(ctx context.Context, plan Plan) (err error) {
	if db.admin, err = pgx.Connect(ctx, plan.URL); err != nil {
		return fmt.Errorf("ops: %w", err)
	}
	if db.pool, err = db.Pool(ctx, "proof-ops", 4); err != nil {
		return err
	}
	for _, role := range []string{"operator", "viewer"} {
		name := db.roleName(role)
		if err := db.Exec(ctx, "CREATE ROLE "+name+" LOGIN"); err != nil {
			return err
		}
		at, err := url.Parse(db.URL)
		if err != nil {
			return fmt.Errorf("ops: %w", err)
		}
		at.User = url.User(name)
		db.urls[role] = at.String()
		if _, err := db.Control.Exec(ctx, "SELECT public.outbox_grant($1, $2)", role, name); err != nil {
			return fmt.Errorf("ops: grant %s: %w", role, err)
		}
	}
	if db.role, err = pgxpool.New(ctx, db.urls["operator"]); err != nil {
		return fmt.Errorf("ops: %w", err)
	}
	return nil
}

func (db *database) roleName(role string) string { return role + "_" + db.Name }

// operator is what a person with the operator's grants has.
func (db *database) operator() *operator.Operator { return operator.New(db.role, outbox.DefaultSchema) }

// Close drops the database and its roles.
func (db *database) Close() error {
	for _, pool := range []*pgxpool.Pool{db.pool, db.role} {
		if pool != nil {
			pool.Close()
		}
	}
	problems := []error{db.Outbox.Close()}
	if db.admin != nil {
		ctx := context.Background() // also after an interrupt
		for _, role := range []string{"operator", "viewer"} {
			_, err := db.admin.Exec(ctx, "DROP ROLE IF EXISTS "+db.roleName(role))
			problems = append(problems, err)
		}
		problems = append(problems, db.admin.Close(ctx))
	}
	return errors.Join(problems...)
}

// read reads rows into values of a type, column by column.
func read[T any](ctx context.Context, db *database, query string, args ...any) ([]T, error) {
	rows, err := db.pool.Query(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("ops: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[T])
	if err != nil {
		return nil, fmt.Errorf("ops: %.60q: %w", query, err)
	}
	return list, nil
}

// one reads one text.
func (db *database) one(ctx context.Context, query string, args ...any) (answer string, err error) {
	if err := db.pool.QueryRow(ctx, query, args...).Scan(&answer); err != nil {
		return "", fmt.Errorf("ops: %.60q: %w", query, err)
	}
	return answer, nil
}
