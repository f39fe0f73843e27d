package pgstore

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Configure prepares the sessions of a relay whose lanes are leased for this long. No statement, no lock
// and no silent connection may last longer than a third of it: a settle that hangs keeps its lanes from
// being taken over.
//
// The settings are start-up parameters, and a pooler that lends connections for a transaction refuses
// those: PgBouncer takes client_encoding, DateStyle, TimeZone, standard_conforming_strings and
// application_name, and answers "unsupported startup parameter" to all others. So where the query mode is one
// for such poolers (exec, simple_protocol or cache_describe, as default_query_exec_mode in the URL), only
// application_name is set here. The rest should then be the role's own settings:
//
//	ALTER ROLE outbox_publisher SET statement_timeout = '10s';
//	ALTER ROLE outbox_publisher SET lock_timeout = '10s';
//	ALTER ROLE outbox_publisher SET idle_in_transaction_session_timeout = '10s';
//	ALTER ROLE outbox_publisher SET jit = off;
//
// Nothing that is promised depends on them: what must hold in a statement is set by the statement.
func Configure(config *pgxpool.Config, lease time.Duration) {
	bound := max(lease/3-lease/30, time.Millisecond)
	parameters := config.ConnConfig.RuntimeParams
	if parameters["application_name"] == "" {
		parameters["application_name"] = "posthaste relay"
	}
	if !pooled(config.ConnConfig.DefaultQueryExecMode) {
		milliseconds := strconv.FormatInt(max(bound.Milliseconds(), 1), 10)
		maps.Copy(parameters, map[string]string{
			"synchronous_commit":                  "on",
			"statement_timeout":                   milliseconds,
			"lock_timeout":                        milliseconds,
			"idle_in_transaction_session_timeout": milliseconds,
			"default_transaction_isolation":       "read committed", // each statement of the fence sees its own moment
			"client_min_messages":                 "warning",
			"jit":                                 "off",
			"max_parallel_workers_per_gather":     "0", // rows come in the order in which the lanes were asked for
			"search_path":                         "",
		})
	}
	others := config.ConnConfig.OnNotice
	config.ConnConfig.OnNotice = func(conn *pgconn.PgConn, notice *pgconn.Notice) {
		remember(conn, notice)
		if others != nil {
			others(conn, notice)
		}
	}
	wrap := config.ConnConfig.AfterNetConnect
	config.ConnConfig.AfterNetConnect = func(ctx context.Context, c *pgconn.Config, conn net.Conn) (net.Conn, error) {
		notice(conn, bound)
		if wrap != nil {
			return wrap(ctx, c, conn)
		}
		return conn, nil
	}
}

// pooled tells whether a query mode was chosen for a pooler that lends connections for a transaction.
func pooled(mode pgx.QueryExecMode) bool {
	return mode == pgx.QueryExecModeExec || mode == pgx.QueryExecModeSimpleProtocol ||
		mode == pgx.QueryExecModeCacheDescribe
}

// notice makes the system notice in time that the other side is gone. What a platform does not know is
// left out: the bounds above and the caller's own deadlines remain.
func notice(conn net.Conn, bound time.Duration) {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{
		Enable: true, Idle: max(bound/2, time.Second), Interval: max(bound/6, time.Second), Count: 3,
	})
	if raw, err := tcp.SyscallConn(); err == nil {
		_ = raw.Control(func(socket uintptr) { setUserTimeout(socket, bound) })
	}
}

// lastWarning is where a connection keeps what the server warned of.
const lastWarning = "posthaste.warning"

// remember keeps warnings. A cancelled wait for a standby is told by one, whose words depend on the
// server's language; no other is expected while a barrier runs, so every warning counts.
func remember(conn *pgconn.PgConn, notice *pgconn.Notice) {
	if notice.SeverityUnlocalized == "WARNING" {
		conn.CustomData()[lastWarning] = notice
	}
}

// strictly runs something on one connection and fails when the server warned of anything meanwhile: a
// commit that waits for its standby and is cancelled succeeds, with a warning that it may be lost.
func (s *Store) strictly(ctx context.Context, run func(*pgx.Conn) error) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Release()
	warnings := conn.Conn().PgConn().CustomData()
	delete(warnings, lastWarning)
	if err := run(conn.Conn()); err != nil {
		return err
	}
	if warning, ok := warnings[lastWarning].(*pgconn.Notice); ok {
		return fmt.Errorf("the server did not confirm the commit: %s %s", warning.Message, warning.Detail)
	}
	return nil
}
