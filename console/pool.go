package console

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The bounds of a console's pool: it must not starve the relay, whoever opens how many pages.
const (
	poolConnections  = 4
	statementTimeout = 5 * time.Second
)

// OpenPool opens a pool for one outbox of a console: few connections, and no statement that takes longer than five
// seconds. It does not connect yet.
func OpenPool(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url) // which knows the settings of pools, and leaves them out
	if err != nil {
		return nil, fmt.Errorf("console: the database's address: %w", err)
	}
	return PoolOf(ctx, config.ConnConfig, nil)
}

// PoolOf is OpenPool for a connection that is configured already. A beforeConnect that is not nil is called before
// each. A pooler that lends connections for a transaction takes no bounds of a session: where the query mode is one for
// those (exec, simple_protocol or cache_describe), a page's own time and what each look sets must do.
func PoolOf(ctx context.Context, connection *pgx.ConnConfig,
	beforeConnect func(context.Context, *pgx.ConnConfig) error,
) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig("")
	if err != nil {
		return nil, fmt.Errorf("console: open the pool: %w", err)
	}
	config.ConnConfig, config.BeforeConnect = connection.Copy(), beforeConnect
	config.MaxConns, config.MinConns, config.MaxConnIdleTime = poolConnections, 0, time.Minute
	limits := config.ConnConfig.RuntimeParams
	switch config.ConnConfig.DefaultQueryExecMode {
	case pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeCacheDescribe:
	case pgx.QueryExecModeCacheStatement, pgx.QueryExecModeDescribeExec:
		limits["statement_timeout"] = strconv.FormatInt(statementTimeout.Milliseconds(), 10)
		limits["idle_in_transaction_session_timeout"] = strconv.FormatInt(2*statementTimeout.Milliseconds(), 10)
	}
	limits["application_name"] = "posthaste console"
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("console: open the pool: %w", err)
	}
	return pool, nil
}
