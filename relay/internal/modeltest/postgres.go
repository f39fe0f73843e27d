package modeltest

import (
	"context"
	"crypto/rand"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver that migrates

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/pgstore"
	"github.com/posthaste-dev/posthaste/schema"
)

var (
	//go:embed dump.sql
	dumpSQL string
	//go:embed clean.sql
	cleanSQL string
)

// most is how many transactions of producers are open at a time.
const most = 4

// Database is an outbox in a schema of its own, used over and over.
type Database struct {
	pool      *pgxpool.Pool
	schema    string
	std       *sql.DB
	observer  *pgx.Conn   // dumps, and cleans
	producers []*pgx.Conn // one for each open transaction
	cleaned   int
}

// Open makes the schema. The role of the URL must be a superuser: cleaning up goes against the triggers.
func Open(ctx context.Context, url string) (db *Database, err error) {
	db = &Database{schema: "modeltest_" + strings.ToLower(rand.Text()[:12])}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.Close(context.WithoutCancel(ctx)))
		}
	}()
	if db.std, err = sql.Open("pgx", url); err != nil {
		return db, err
	}
	if err := schema.Outbox.Up(ctx, db.std, schema.Options{Schema: db.schema}); err != nil {
		return db, err
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return db, err
	}
	config.ConnConfig.RuntimeParams["search_path"] = ""
	// What is compared depends on neither, and the proof is twice as fast.
	config.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
	config.ConnConfig.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	if db.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return db, err
	}
	if db.observer, err = pgx.ConnectConfig(ctx, config.ConnConfig); err != nil {
		return db, err
	}
	if _, err := db.observer.Exec(ctx, "SET session_replication_role = replica"); err != nil {
		return db, err
	}
	for range most {
		producer, err := pgx.ConnectConfig(ctx, config.ConnConfig)
		if err != nil {
			return db, err
		}
		db.producers = append(db.producers, producer)
	}
	return db, nil
}

// Close drops the schema.
func (db *Database) Close(ctx context.Context) error {
	for _, producer := range db.producers {
		_ = producer.Close(ctx)
	}
	if db.observer != nil {
		_ = db.observer.Close(ctx)
	}
	if db.pool != nil {
		db.pool.Close()
	}
	if db.std == nil {
		return nil
	}
	_, err := db.std.ExecContext(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{db.schema}.Sanitize()+" CASCADE")
	return errors.Join(err, db.std.Close())
}

func (db *Database) sql(statement string) string {
	return strings.ReplaceAll(statement, "{schema}", pgx.Identifier{db.schema}.Sanitize())
}

// vacuumEvery is how many sequences' dead rows a dump walks over.
const vacuumEvery = 25

// clean ends what is open and empties the tables.
func (db *Database) clean(ctx context.Context) error {
	for _, producer := range db.producers {
		if producer.PgConn().TxStatus() != 'I' {
			if _, err := producer.Exec(ctx, "ROLLBACK"); err != nil {
				return err
			}
		}
	}
	if _, err := db.observer.PgConn().Exec(ctx, db.sql(cleanSQL)).ReadAll(); err != nil {
		return err
	}
	if db.cleaned++; db.cleaned%vacuumEvery == 0 {
		_, err := db.observer.Exec(ctx, db.sql("VACUUM {schema}.outbox_events, {schema}.outbox_held, "+
			"{schema}.outbox_lanes, {schema}.outbox_dlq, "+
			"{schema}.outbox_actions, {schema}.outbox_requests, "+
			"{schema}.outbox_topics, {schema}.outbox_relays, {schema}.outbox_beats"))
		return err
	}
	return nil
}

// aggregates finds two aggregates in one lane and one in another: few, so that events meet.
func (db *Database) aggregates(ctx context.Context) (map[core.Aggregate]int16, error) {
	rows, err := db.observer.Query(ctx,
		db.sql(`SELECT n::text, {schema}.outbox_lane('default', 'order', n::text) FROM generate_series(1, 1000) n`))
	if err != nil {
		return nil, err
	}
	wanted := map[int16]int{3: 2, 17: 1}
	found := map[core.Aggregate]int16{}
	var name string
	var lane int16
	_, err = pgx.ForEachRow(rows, []any{&name, &lane}, func() error {
		if wanted[lane] > 0 {
			wanted[lane]--
			found[core.Aggregate{Namespace: "default", Type: "order", ID: name}] = lane
		}
		return nil
	})
	return found, err
}

// postgres is the side in the database, for one sequence.
type postgres struct {
	db      *Database
	answers core.Store
	txs     []*producerTx
}

// producerTx is a transaction and who it is.
type producerTx struct {
	conn *pgx.Conn // nil: it has ended
	self core.Writer
}

func newPostgres(db *Database) *postgres {
	return &postgres{db: db, answers: pgstore.New(db.pool, db.schema)}
}

func (p *postgres) found(ctx context.Context, id outbox.ID) (core.Found, error) {
	found := core.Found{ID: id}
	err := p.db.observer.QueryRow(ctx, p.db.sql(`
SELECT e.lane, e.seq, coalesce(h.version, 0)
  FROM {schema}.outbox_events e LEFT JOIN {schema}.outbox_held h ON h.lane = e.lane AND h.seq = e.seq
 WHERE e.id = $1::text::uuid`), id.String()).Scan(&found.Lane, &found.Seq, &found.Version)
	if errors.Is(err, pgx.ErrNoRows) {
		return found, nil
	}
	return found, err
}

func (p *postgres) version(ctx context.Context, request int64) (version int64, err error) {
	const ofRequest = "SELECT xmin::text::bigint FROM {schema}.outbox_requests WHERE id = $1"
	err = p.db.observer.QueryRow(ctx, p.db.sql(ofRequest), request).Scan(&version)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return version, err
}

func (p *postgres) store() core.Store { return p.answers }

// begin takes a connection that is idle. The script sees to it that there is one.
func (p *postgres) begin(ctx context.Context) error {
	for _, conn := range p.db.producers {
		if conn.PgConn().TxStatus() != 'I' {
			continue
		}
		answers, err := conn.PgConn().Exec(ctx,
			"BEGIN; SELECT virtualtransaction FROM pg_locks WHERE locktype = 'virtualxid' AND pid = pg_backend_pid()").ReadAll()
		if err != nil {
			return err
		}
		p.txs = append(p.txs, &producerTx{conn: conn, self: core.Writer{VXID: string(answers[1].Rows[0][0])}})
		return nil
	}
	return errors.New("modeltest: no connection is idle")
}

func (p *postgres) write(ctx context.Context, number int, write write) (numbers []int64, err error) {
	tx := p.txs[number]
	switch {
	case write.draw:
		var seq int64
		err := tx.conn.QueryRow(ctx, p.db.sql("SELECT nextval('{schema}.outbox_events_seq_seq')")).Scan(&seq)
		return []int64{seq}, err
	case write.undo:
		if _, err := tx.conn.Exec(ctx, "SAVEPOINT here"); err != nil {
			return nil, err
		}
		defer func() {
			_, undone := tx.conn.Exec(ctx, "ROLLBACK TO SAVEPOINT here")
			err = errors.Join(err, undone)
		}()
	}
	for i := range write.events {
		seq, err := p.insert(ctx, tx, write.seq, &write.events[i])
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, seq)
	}
	return numbers, nil
}

// insert writes an event, with a number that was drawn before or the next one, and learns who the
// transaction is.
func (p *postgres) insert(ctx context.Context, tx *producerTx, seq int64, e *core.Event) (int64, error) {
	columns, values, overriding := "", "", ""
	args := []any{
		e.ID.String(), e.Type, e.Aggregate.Namespace, e.Aggregate.Type, e.Aggregate.ID,
		text(e.Tenant), text(e.DedupeKey), string(e.Payload), text(string(e.Headers)),
	}
	if seq != 0 {
		columns, values, overriding = ", seq", ", $10", "OVERRIDING SYSTEM VALUE"
		args = append(args, seq)
	}
	var xid string
	err := tx.conn.QueryRow(ctx, p.db.sql(`
INSERT INTO {schema}.outbox_events (id, event_type, namespace, aggregate_type, aggregate_id, tenant_id, dedupe_key, 
    payload_json, headers`+columns+`) `+overriding+`
VALUES ($1::text::uuid, $2, $3, $4, $5, $6, $7, $8::text::json, $9::text::json`+values+`)
RETURNING seq, pg_current_xact_id()::text`), args...).Scan(&seq, &xid)
	if err != nil {
		return 0, err
	}
	tx.self.XID, err = strconv.ParseUint(xid, 10, 64)
	return seq, err
}

// text is NULL where there is none.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (p *postgres) end(ctx context.Context, number int, commit bool) error {
	tx := p.txs[number]
	statement := "ROLLBACK"
	if commit {
		statement = "COMMIT"
	}
	_, err := tx.conn.Exec(ctx, statement)
	tx.conn = nil
	return err
}

func (p *postgres) writer(number int) core.Writer { return p.txs[number].self }

func (p *postgres) expireRelay(ctx context.Context, relay outbox.ID) error {
	_, err := p.db.observer.Exec(ctx, p.db.sql(
		"UPDATE {schema}.outbox_beats SET until = clock_timestamp() - interval '1 second' WHERE relay = $1::text::uuid"),
		relay.String())
	return err
}

func (p *postgres) dump(ctx context.Context) ([]string, error) {
	rows, err := p.db.observer.Query(ctx, p.db.sql(dumpSQL))
	if err != nil {
		return nil, fmt.Errorf("dump: %w", err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("dump: %w", err)
	}
	return lines, nil
}

// DefaultURL is the PostgreSQL of the tests' services, unless the environment names another.
func DefaultURL() string {
	if url := os.Getenv("SERVICES_POSTGRES18_URL"); url != "" {
		return url
	}
	return "postgres://postgres@127.0.0.1:15418/posthaste?sslmode=disable"
}
