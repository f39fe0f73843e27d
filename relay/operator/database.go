package operator

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// mostSnapshots is how many of those that hold old versions of rows are listed.
const mostSnapshots = 20

// A Database is how the tables of the outbox do, as the server knows it: no row is counted.
type Database struct {
	// At is when that was, by the database's clock; Server is its version.
	At     time.Time `json:"at"`
	Server string    `json:"server"`
	// Tables are those of the outbox, the largest first.
	Tables []Table `json:"tables"`
	// Snapshots are who may still look at old versions of rows, the oldest first, at most 20: what became old since the
	// oldest began no vacuum takes away.
	Snapshots []Snapshot `json:"snapshots,omitempty"`
	// SeesAll tells whether the role may see the state of others' sessions, and since when their transactions are open.
	// `GRANT pg_read_all_stats` gives it that.
	SeesAll bool `json:"seesAll"`
	// Retention is how it stands, by kind.
	Retention []Retention `json:"retention"`
}

// A Table is one of the outbox, with all its partitions where it has some.
type Table struct {
	Name string `json:"name"`
	// Bytes are of the table and what it keeps beside it, IndexBytes of all its indexes.
	Bytes      int64 `json:"bytes"`
	IndexBytes int64 `json:"indexBytes"`
	// Rows is an estimate, and so is Dead: old versions of rows that no vacuum has taken away.
	Rows int64 `json:"rows"`
	Dead int64 `json:"dead"`
	// Updates are those of rows since the server keeps statistics, HOT those of them that had to touch no index.
	Updates int64 `json:"updates"`
	HOT     int64 `json:"hot"`
	// Autovacuumed is when it was last vacuumed by itself, Vacuumed by hand; nil: not since the server keeps statistics.
	Autovacuumed *time.Time `json:"autovacuumed,omitempty"`
	Vacuumed     *time.Time `json:"vacuumed,omitempty"`
}

// HOTShare is which share of the updates touched no index; known tells that there were any.
func (t *Table) HOTShare() (share float64, known bool) {
	if t.Updates == 0 {
		return 0, false
	}
	return float64(t.HOT) / float64(t.Updates), true
}

// A Snapshot is one that holds back what vacuum takes away.
type Snapshot struct {
	// Kind is session, prepared or slot: a session, a prepared transaction or a replication slot. Name is of the latter
	// two, PID of a session, or of who uses the slot; 0: nobody.
	Kind string `json:"kind"`
	PID  int    `json:"pid,omitempty"`
	Name string `json:"name,omitempty"`
	// Role and Application are whose it is. State is that of the session, empty where this role may not see it, or tells
	// whether a slot is active or idle.
	Role        string `json:"role,omitempty"`
	Application string `json:"application,omitempty"`
	State       string `json:"state,omitempty"`
	// Since is when its transaction began; nil: a slot's, or this role may not see it. Transactions is how many have begun
	// since then on the server, which everybody may see.
	Since        *time.Time `json:"since,omitempty"`
	Transactions int64      `json:"transactions"`
}

// Retention is how the retention of one kind of rows stands.
type Retention struct {
	// Kind is published (events, also those that were discarded), dead or dedupe.
	Kind string `json:"kind"`
	// RanAt is when it last ran, and CutOff before which it deleted then; nil: it never did.
	CutOff *time.Time `json:"cutOff,omitempty"`
	RanAt  *time.Time `json:"ranAt,omitempty"`
	// Deleted is how many rows went since the beginning.
	Deleted int64 `json:"deleted"`
	// HaltedAt is when the last run stopped for HaltReason; nil: it did not.
	HaltedAt   *time.Time `json:"haltedAt,omitempty"`
	HaltReason string     `json:"haltReason,omitempty"`
	// Working tells whether a process is at it.
	Working bool `json:"working"`
	// Oldest is when the first event by number was made, or the first dead letter died: far before CutOff, something is
	// left to do, or something is kept because it is not finished. Nil: there is none, or it is not known.
	Oldest *time.Time `json:"oldest,omitempty"`
}

// Database says how large the tables of the outbox are, whether vacuum keeps up and who keeps it from that, and how
// retention stands. The grants of the viewer role are enough; of the sessions of others it shows less then.
func (o *Operator) Database(ctx context.Context) (found Database, err error) {
	err = o.look(ctx, "database", func(l *looking) error {
		found.At = l.now.UTC()
		if err := l.QueryRow(ctx, "SELECT pg_catalog.current_setting('server_version'), "+
			"pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE')").Scan(&found.Server, &found.SeesAll); err != nil {
			return err //nolint:wrapcheck // look says what it was
		}
		if err := o.tables(ctx, l, &found); err != nil {
			return err
		}
		if err := o.snapshots(ctx, l, mostSnapshots, &found); err != nil {
			return err
		}
		var r Retention
		return o.rows(ctx, l, "retention", nil, []any{
			&r.Kind, &r.CutOff, &r.RanAt, &r.Deleted, &r.HaltedAt, &r.HaltReason, &r.Working, &r.Oldest,
		}, func() { found.Retention = append(found.Retention, r) })
	})
	return found, err
}

// tables reads how large they are.
func (o *Operator) tables(ctx context.Context, l *looking, found *Database) error {
	var t Table
	return o.rows(ctx, l, "tables", []any{pgx.Identifier{o.schema}.Sanitize()}, []any{
		&t.Name, &t.Bytes, &t.IndexBytes, &t.Rows, &t.Dead, &t.Updates, &t.HOT, &t.Autovacuumed, &t.Vacuumed,
	}, func() { found.Tables = append(found.Tables, t) })
}

// snapshots reads who holds back what vacuum takes away.
func (o *Operator) snapshots(ctx context.Context, l *looking, most int, found *Database) error {
	var s Snapshot
	return o.rows(ctx, l, "snapshots", []any{most}, []any{
		&s.Kind, &s.PID, &s.Name, &s.Role, &s.Application, &s.State, &s.Since, &s.Transactions,
	}, func() { found.Snapshots = append(found.Snapshots, s) })
}
