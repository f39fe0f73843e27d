package bench

import (
	"context"
	"fmt"
)

// Pages are what statements looked at, and how many rows they answered with or changed.
type Pages struct {
	Calls, Rows, Pages int64
}

// Each is how many pages a row took, of so many.
func (p Pages) Each(rows int) float64 { return float64(p.Pages) / float64(rows) }

// CountPages makes the server count anew the pages that statements look at, in this database. It needs
// pg_stat_statements to be loaded.
func (db *Database) CountPages(ctx context.Context) error {
	return db.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements SCHEMA public",
		"SELECT public.pg_stat_statements_reset(0, (SELECT oid FROM pg_database WHERE datname = current_database()), 0)")
}

// PagesOf is what the statements with this part in their text have looked at since then. A constant is not part of it.
func (db *Database) PagesOf(ctx context.Context, part string) (p Pages, err error) {
	err = db.Control.QueryRow(ctx, `SELECT coalesce(sum(calls), 0)::bigint, coalesce(sum(rows), 0)::bigint,
		       coalesce(sum(shared_blks_hit + shared_blks_read), 0)::bigint
		  FROM public.pg_stat_statements
		 WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND strpos(query, $1) > 0
		   AND query NOT LIKE '%pg_stat_statements%'`,
		part).Scan(&p.Calls, &p.Rows, &p.Pages)
	if err != nil {
		return p, fmt.Errorf("bench: pages: %w", err)
	}
	return p, nil
}
