package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/torture"
)

// where is what the run is about to work on, without secrets.
type where struct {
	host, database, role string // of PostgreSQL
	version              string
	direct               bool   // connections to it may lead through a proxy
	broker               string // its host, or its project
	brokerDirect         bool
}

// look finds out whether a run can work there, and may.
func look(ctx context.Context, s settings) (*where, error) {
	address, err := url.Parse(s.postgres)
	if err != nil || address.Scheme != "postgres" && address.Scheme != "postgresql" {
		return nil, errors.New("-postgres is not a URL: write postgres://user@host:port/database") // it may hold a password
	}
	config, err := pgx.ParseConfig(s.postgres)
	if err != nil {
		return nil, errors.New("-postgres is not a URL that PostgreSQL clients understand")
	}
	w := &where{host: config.Host, database: config.Database, role: config.User}
	// A certificate that must name its host would not name the proxy.
	mode := address.Query().Get("sslmode")
	w.direct = !strings.HasPrefix(config.Host, "/") && len(config.Fallbacks) <= 1 && mode != "verify-full" &&
		mode != "verify-ca"
	broker, err := url.Parse(s.broker)
	if err != nil {
		return nil, errors.New("-broker is not an address: write nats://host:port or pubsub://project")
	}
	w.broker = broker.Hostname()
	w.brokerDirect = broker.Scheme == "nats" && onThisMachine(w.broker)
	if broker.Scheme == "pubsub" {
		w.broker, w.brokerDirect = "project "+broker.Host+" of Google Cloud", false
		emulator := broker.Query().Get("emulator")
		if emulator == "" {
			emulator = os.Getenv("PUBSUB_EMULATOR_HOST")
		}
		if host, _, err := net.SplitHostPort(emulator); err == nil {
			w.broker, w.brokerDirect = host, broker.Query().Has("emulator")
		}
	}
	if err := w.allowed(s.yes); err != nil {
		return nil, err
	}
	return w, w.examine(ctx, config, s)
}

func onThisMachine(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasPrefix(host, "/") || ip != nil && ip.IsLoopback()
}

// allowed rejects other machines unless that is what is wanted.
func (w *where) allowed(yes bool) error {
	var remote []string
	for _, host := range []string{w.host, w.broker} {
		if !onThisMachine(host) {
			remote = append(remote, host)
		}
	}
	if len(remote) == 0 || yes {
		return nil
	}
	return fmt.Errorf("%s: not on this machine. A run writes thousands of rows there and ends its own sessions; give "+
		"-yes if that is meant",
		strings.Join(remote, " and "))
}

const examination = `SELECT pg_is_in_recovery(), current_setting('default_transaction_read_only')::bool, 
	current_setting('server_version'),
	current_setting('server_version_num')::int, has_database_privilege(current_database(), 'CREATE'), current_user::text, 
	current_database()::text,
	current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int - (SELECT count(*) 
	FROM pg_stat_activity WHERE backend_type = 'client backend')::int`

// connectionsOfARelay is the most that a relay uses: for leases, for reads, for the doorbell.
const connectionsOfARelay = 11

// examine queries the database whether it will do.
func (w *where) examine(ctx context.Context, config *pgx.ConnConfig, s settings) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("the database does not let us in: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var standby, readOnly, create bool
	var number, room int
	err = conn.QueryRow(ctx, examination).Scan(&standby, &readOnly, &w.version, &number, &create, &w.role,
		&w.database, &room)
	if err != nil {
		return fmt.Errorf("query the database: %w", err)
	}
	need := s.relays*connectionsOfARelay + s.producers + 10
	switch {
	case standby:
		return fmt.Errorf("the server at %s is a standby, and takes no writes: give the primary", w.host)
	case readOnly:
		return fmt.Errorf("role %s has default_transaction_read_only: give one that may write", w.role)
	case number < 150_000:
		return fmt.Errorf("the server is PostgreSQL %s: 15 or later is needed", w.version)
	case !create:
		return fmt.Errorf("role %s may not create a schema: a run needs one of its own. A superuser can allow it: GRANT "+
			"CREATE ON DATABASE %s TO %s;",
			w.role, pgx.Identifier{w.database}.Sanitize(), pgx.Identifier{w.role}.Sanitize())
	case room < need:
		return fmt.Errorf("the server has room for %d more connections, and %d relays and %d producers need up to %d: run "+
			"fewer, or raise max_connections",
			max(room, 0), s.relays, s.producers, need)
	default:
		return nil
	}
}

// announce says what is about to happen.
func (w *where) announce(to io.Writer, s settings, plan torture.Plan, ways *ways) {
	_, _ = fmt.Fprintf(to, `outbox-torture will, for about %s:
  create the schema %s in database %s on %s (PostgreSQL %s, as role %s), and drop it in the end
  create topics whose names begin with %s on %s, and delete them in the end
  start %d relays and %d producers on this machine, which write %d events
  kill, stop and stall the relays, cut and end their connections and those of the producers; nobody else's
  write down what happens in %s (seed %d)
`, s.duration, plan.Run, w.database, w.host, w.version, w.role, plan.Run, w.broker, plan.Relays, plan.Producers,
		plan.Events, plan.Folder, plan.Seed)
	for _, without := range ways.without {
		_, _ = fmt.Fprintln(to, "It will not", without)
	}
}
