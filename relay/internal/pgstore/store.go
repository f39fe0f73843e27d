// Package pgstore is the outbox in PostgreSQL as the relay's core sees it.
//
// Every method is one round trip, and one transaction that commits itself; only [Store.Settle] looks again where not
// all was as it had been read. The statements are the files in sql, each with the
// reason for its shape. They name every object with its schema, need no more than what outbox_grant gives to a relay,
// and work with every query mode of pgx, so also behind a pooler that lends connections for a transaction.
//
// The pool should be made from a configuration that went through [Configure]: without it a synchronous
// commit that did not wait for its standby goes unnoticed.
package pgstore

import (
	"embed"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/sqltext"
)

//go:embed sql/*.sql
var files embed.FS

var _ core.Store = (*Store)(nil)

// Store is an outbox in one schema. It may be used from several goroutines.
type Store struct {
	pool     *pgxpool.Pool
	mode     pgx.QueryExecMode // of statements whose answers are decoded here
	sequence string            // with its schema, as regclass reads it
	sql      statements
}

// statements are the texts with the schema's name in them.
type statements struct {
	register, registerKnown, forgetRelays       string
	beat, own, server, peers, lanes             string
	pauses, limits                              string
	endExpired                                  string
	ownToTake, acquire, ownLanes                string
	ownToGive, release, leave                   string
	note, unnote                                string
	fenceSequence, fenceWriters, fenceBarrier   string
	barrier                                     string
	read, sweep                                 string
	settlePublished, settle                     string
	unpark, heldKeys, dueKeys, heldRows, parked string
	takeRequests, settleRequests, requested     string
	saveRoutes                                  string
}

// New returns the outbox in this schema.
func New(pool *pgxpool.Pool, schema string) *Store {
	name := pgx.Identifier{schema}.Sanitize()
	text := func(file string) string { return statement(file, name) }
	return &Store{
		pool: pool, mode: decodable(pool.Config().ConnConfig.DefaultQueryExecMode), sequence: name + ".outbox_events_seq_seq",
		sql: statements{
			register: text("register"), registerKnown: text("register_known"), forgetRelays: text("forget_relays"),
			beat: text("beat"), own: text("own"), server: text("server"), peers: text("peers"), lanes: text("lanes"),
			pauses: text("pauses"), limits: text("limits"), endExpired: text("end_expired"),
			ownToTake: text("own_to_take"), acquire: text("acquire"), ownLanes: text("own_lanes"),
			ownToGive: text("own_to_give"), release: text("release"), leave: text("leave"),
			note: text("note"), unnote: text("unnote"),
			fenceSequence: text("fence_sequence"), fenceWriters: text("fence_writers"), fenceBarrier: text("fence_barrier"),
			barrier: text("barrier"),
			read:    text("read"), sweep: text("sweep"),
			settlePublished: text("settle_published"), settle: text("settle"),
			unpark: text("unpark"), heldKeys: text("held_keys"), dueKeys: text("due_keys"), heldRows: text("held_rows"),
			parked:       text("old_parked"),
			takeRequests: text("take_requests"), settleRequests: text("settle_requests"), requested: text("requested"),
			saveRoutes: text("save_routes"),
		},
	}
}

// lookers are the statements that look at lanes, which are their first parameter, and the numbers of the parameters
// that say for whom.
var lookers = map[string][2]string{
	"read":      {"$7", "$8"},
	"unpark":    {"$6", "$7"},
	"held_keys": {"$7", "$8"}, "due_keys": {"$6", "$7"}, "held_rows": {"$9", "$10"}, "old_parked": {"$7", "$8"},
	"sweep": {"$5", "$6"}, "take_requests": {"$2", "$3"},
}

// statement is a file of ours with the schema's name in it. Where it may find nothing, each of its rows has the
// incarnation of the server in front and the lanes that are lost, and where there are none one row with nothing else.
// It leaves out what is lost itself (seen.lost), before its limits.
func statement(file, schema string) string {
	text := source(file)
	switch file {
	case "held_keys", "due_keys", "held_rows", "old_parked", "sweep":
		text = "SELECT seen.incarnation, seen.lost, found.* FROM (SELECT {incarnation} AS incarnation, {lost} AS lost) " +
			"seen\nLEFT JOIN LATERAL (\n" + text + "\n) found ON true"
	}
	text = strings.NewReplacer("{lost}", source("lost"), "{told_floors}", source("told_floors")).Replace(text)
	owner := lookers[file]
	text = strings.NewReplacer("{lanes}", "$1", "{relay}", owner[0], "{token}", owner[1]).Replace(text)
	text = strings.ReplaceAll(text, "{incarnation}", source("incarnation"))
	return strings.ReplaceAll(text, "{schema}", schema)
}

// source reads a file of ours, without the comments that the server would read again every time.
func source(file string) string {
	text, err := files.ReadFile("sql/" + file + ".sql")
	if err != nil {
		panic(err) // the files are part of the program
	}
	return sqltext.Bare(string(text))
}

// decodable is the mode for statements whose answers are decoded from their binary form. Without a
// description pgx would ask for text; with a cached one it still names no prepared statement.
func decodable(mode pgx.QueryExecMode) pgx.QueryExecMode {
	if mode == pgx.QueryExecModeExec || mode == pgx.QueryExecModeSimpleProtocol {
		return pgx.QueryExecModeCacheDescribe
	}
	return mode
}

// decoded are the arguments of a statement whose answer is decoded from its binary form.
func (s *Store) decoded(args ...any) []any {
	return append([]any{s.mode, pgx.QueryResultFormats{pgx.BinaryFormatCode}}, args...)
}

func failed(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// uuid is an id as every query mode of pgx can send it.
func uuid(id outbox.ID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }

func uuids(ids []outbox.ID) []pgtype.UUID {
	list := make([]pgtype.UUID, len(ids))
	for i, id := range ids {
		list[i] = uuid(id)
	}
	return list
}

// asker is for whom a look is: nobody where it is zero.
func asker(owner core.Owner) []any {
	asks := owner != core.Owner{}
	return []any{pgtype.UUID{Bytes: owner.Relay, Valid: asks}, pgtype.UUID{Bytes: owner.Token, Valid: asks}}
}

// texts is never NULL, which a nil slice would be.
func texts(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func numbers(list []int16) []int16 {
	if list == nil {
		return []int16{}
	}
	return list
}

// longestError is what the columns for errors hold, in characters.
const longestError = 2048

// readable makes a text fit into the columns for errors. A settle that failed because of one would fail
// again for ever.
func readable(text string) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD")
	if len(text) <= longestError {
		return text
	}
	characters := 0
	for at := range text {
		if characters == longestError {
			return text[:at]
		}
		characters++
	}
	return text
}

func micros(d time.Duration) int64 { return d.Microseconds() }
