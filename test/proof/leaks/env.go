package leaks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/cluster"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/server"
)

// env is servers that want passwords.
type env struct {
	folder   string
	birds    *birds
	database *cluster.Cluster
	pool     *pgxpool.Pool // as superuser, who needs no password
	nats     *server.Server
	natsFile string
	conn     *nats.Conn
	stream   jetstream.Stream
	rules    string // the file of who may connect how

	mu      sync.Mutex
	written int
}

// The roles of the database, and the user of NATS.
const (
	relayRole  = "shop_relay"
	listenRole = "shop_ear"
	natsUser   = "shop"
)

// newEnv starts the servers.
func newEnv(ctx context.Context, folder string, b *birds) (_ *env, err error) {
	h := &env{folder: folder, birds: b, natsFile: filepath.Join(folder, "nats.conf")}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.close())
		}
	}()
	if err := h.startDatabase(ctx); err != nil {
		return nil, err
	}
	if h.nats, err = server.NewNATS(folder, "--config", h.natsFile); err != nil {
		return nil, err
	}
	if err := h.startNATS(ctx, b.natsPassword.Text); err != nil {
		return nil, err
	}
	h.conn, err = nats.Connect(h.natsURL(b.natsPassword.Text), nats.Timeout(eventually.Patience), nats.MaxReconnects(-1),
		nats.ReconnectWait(100*time.Millisecond), nats.IgnoreAuthErrorAbort(),
		// That the password is wrong for a while is the proof's own doing.
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		return nil, fmt.Errorf("leaks: connect to NATS: %w", err)
	}
	js, err := jetstream.New(h.conn, jetstream.WithDefaultTimeout(eventually.Patience))
	if err == nil {
		h.stream, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: "leaks", Subjects: []string{"leaks.>"}})
	}
	if err != nil {
		return nil, fmt.Errorf("leaks: a stream: %w", err)
	}
	return h, nil
}

// startDatabase makes a cluster that asks all but its superuser for a password, and the publishers' roles.
func (h *env) startDatabase(ctx context.Context) error {
	rules, err := os.CreateTemp("", "posthaste-hba-") // outside the folder, which the server's user may not enter
	if err != nil {
		return fmt.Errorf("leaks: %w", err)
	}
	h.rules = rules.Name()
	_, err = rules.WriteString("host all postgres 127.0.0.1/32 trust\nlocal all postgres trust\nhost all all " +
		"127.0.0.1/32 scram-sha-256\n")
	if err = errors.Join(err, rules.Chmod(0o644), rules.Close()); err != nil {
		return fmt.Errorf("leaks: %w", err)
	}
	if h.database, err = cluster.New(ctx, cluster.Config{
		Major: 18, Settings: map[string]string{"hba_file": h.rules},
	}); err != nil {
		return err
	}
	if h.pool, err = pgxpool.New(ctx, h.database.URL()); err != nil {
		return fmt.Errorf("leaks: %w", err)
	}
	for role, password := range map[string]Canary{
		relayRole: h.birds.databasePassword, listenRole: h.birds.listenPassword,
	} {
		if err := h.database.Exec(ctx, fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", role, password.Text)); err != nil {
			return err
		}
	}
	return nil
}

// setPassword changes the publishers' password and ends their sessions.
func (h *env) setPassword(ctx context.Context, password string) error {
	if err := h.database.Exec(ctx, fmt.Sprintf("ALTER ROLE %s PASSWORD '%s'", relayRole, password)); err != nil {
		return err
	}
	return h.database.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1", relayRole)
}

// databaseURL is the database as a role with a password.
func (h *env) databaseURL(role, password string) string {
	return fmt.Sprintf("postgres://%s:%s@127.0.0.1:%d/postgres?sslmode=disable&connect_timeout=5", role, password,
		h.database.Port())
}

// startNATS starts the server, which wants this password and takes no more than 64 KiB.
func (h *env) startNATS(ctx context.Context, password string) error {
	text := fmt.Sprintf("max_payload: 65536\nauthorization { user: %s, password: %s }\n", natsUser, password)
	if err := os.WriteFile(h.natsFile, []byte(text), 0o600); err != nil {
		return fmt.Errorf("leaks: %w", err)
	}
	return h.nats.Start(ctx)
}

func (h *env) natsURL(password string) string {
	return "nats://" + natsUser + ":" + password + "@" + h.nats.Address
}

// write inserts events as they are, each of an aggregate of its own. Who brings the lane is not checked by the outbox.
func (h *env) write(ctx context.Context, events ...event) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := pgx.BeginFunc(ctx, h.pool, func(tx pgx.Tx) error {
		for _, e := range events {
			h.written++
			id := outbox.NewID()
			dedupe := e.dedupe
			if dedupe != "" {
				dedupe = fmt.Sprintf("%s-%d", dedupe, h.written)
			}
			if dedupe != "" && e.tenant != "" { // as the relay wants it, which looks at every row
				dedupe = e.tenant + "/" + dedupe
			}
			kind := e.kind
			if kind == "" {
				kind = []string{"order_placed", "order_changed"}[h.written%2]
			}
			_, err := tx.Exec(ctx, `INSERT INTO outbox_events (lane, id, event_type, aggregate_type, aggregate_id,
				payload_json, headers, tenant_id, dedupe_key)
				VALUES (outbox_lane('default', 'order', $3), $1, $2, 'order', $3, $4::text::json, nullif($5::text, '')::json,
				nullif($6::text, ''), nullif($7::text, ''))`,
				id, kind, fmt.Sprintf("order-%d", h.written), strings.ReplaceAll(e.payload, "{id}", id.String()), e.headers,
				e.tenant, dedupe)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("leaks: write events: %w", err)
	}
	return nil
}

// arrived is how many messages NATS has, also while it comes back.
func (h *env) arrived(ctx context.Context) (n uint64, err error) {
	err = eventually.Within(ctx, eventually.Patience, "NATS answers", func() (bool, error) {
		asking, cancel := context.WithTimeout(ctx, 10*time.Second) // one that hangs is asked again
		defer cancel()
		info, err := h.stream.Info(asking)
		if err == nil {
			n = info.State.LastSeq
		}
		return err == nil, err
	})
	return n, err
}

func (h *env) close() error {
	if h.conn != nil {
		h.conn.Close()
	}
	h.nats.Close()
	if h.pool != nil {
		h.pool.Close()
	}
	if h.rules != "" {
		_ = os.Remove(h.rules) // of no consequence
	}
	if h.database != nil {
		return h.database.Close()
	}
	return nil
}
