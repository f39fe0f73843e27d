package schema

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/kit/leases"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// A matrix is a database with a role for every part and a row in every state.
type matrix struct {
	db    *pgtest.DB
	roles map[string]string
	pools map[string]*pgxpool.Pool
	ids   *strings.Replacer
}

func newMatrix(t testing.TB, db *pgtest.DB) *matrix {
	t.Helper()
	m := &matrix{db: db, roles: map[string]string{}, pools: map[string]*pgxpool.Pool{}}
	ready, dead, passed := insertEvent(t, db, "1", 0), insertEvent(t, db, "1", 4), insertEvent(t, db, "1", 5)
	discarded, published := insertEvent(t, db, "1", 7), insertEvent(t, db, "1", 6)
	db.Exec(t, "SELECT {schema}.outbox_emit('order_created', 'order', '1', '{}', dedupe_key => 'taken')")
	db.Exec(t, leases.Join, relayOne, "r", "1 hour")
	db.Exec(t, "INSERT INTO {schema}.outbox_markers (layout, lane, event_id) VALUES (1, 1, $1)", ready)
	resolved, unresolved := insertDeadLetter(t, db, dead), insertDeadLetter(t, db, dead)
	insertAction(t, db, "discard", dead, resolved)
	for _, delivered := range []string{"NULL", "now()"} {
		db.Exec(t, "INSERT INTO {schema}.outbox_requests (action_id, event_id, event_seq, lane, delivered_at) "+
			"VALUES ($1, $2, 1, 1, "+delivered+")",
			insertAction(t, db, "redeliver", published, nil), published)
	}
	m.ids = strings.NewReplacer("{ready}", ready, "{dead}", dead, "{passed}", passed, "{discarded}", discarded,
		"{published}", published,
		"{resolved}", fmt.Sprint(resolved), "{unresolved}", fmt.Sprint(unresolved),
		"{new}", column(t, db.Pool, db.SQL("SELECT {schema}.outbox_uuid7()::text"))[0])
	for _, part := range parts {
		role := pgtest.NewRole(t, db.Server, part)
		if part == "stranger" {
			db.Exec(t, "GRANT USAGE ON SCHEMA {schema} TO "+quote(role))
		} else {
			db.Exec(t, "SELECT {schema}.outbox_grant($1, $2)", part, role)
		}
		m.roles[part] = role
		m.pools[part] = openPool(t, withParameter(t, pgtest.As(t, db.URL, role), "search_path", ""))
	}
	return m
}

// try runs an operation as a part, takes it back, and returns its SQLSTATE.
func (m *matrix) try(t testing.TB, part string, o operation) string {
	t.Helper()
	tx, err := m.pools[part].Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = tx.Exec(t.Context(), m.ids.Replace(m.db.SQL(o.sql)))
	return pgtest.SQLState(err)
}

// want is the SQLSTATE that the matrix says: "" for allowed.
func (o operation) want(part string) string {
	switch {
	case o.may == "everyone", slices.Contains(strings.Fields(o.may), part):
		return ""
	case slices.Contains(strings.Fields(o.guarded), part):
		return "23001"
	}
	return "42501"
}

// A tally counts the cells of a matrix; wrong names those that are not as the matrix says.
type tally struct {
	cells, allowed, denied int
	wrong                  []string
}

func (m *matrix) check(t testing.TB) (result tally) {
	t.Helper()
	for _, o := range operations {
		for _, part := range parts {
			got, want := m.try(t, part, o), o.want(part)
			result.cells++
			if want == "" {
				result.allowed++
			} else {
				result.denied++
			}
			if got != want {
				result.wrong = append(result.wrong, fmt.Sprintf("%s: %s: got %q, want %q", part, o.name, got, want))
			}
		}
	}
	return result
}

// TestRolesMatrix asks every operation as every part.
func TestRolesMatrix(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		result := newMatrix(t, db).check(t)
		for _, wrong := range result.wrong {
			t.Error(wrong)
		}
		if result.cells < 60 || result.allowed < 30 || result.denied < 30 {
			t.Errorf("%d cells are too few", result.cells)
		}
		figure(t, "role_cells_"+db.Name, result.cells)
		t.Logf("roles cells=%d allowed=%d denied=%d wrong=%d", result.cells, result.allowed, result.denied, len(result.wrong))
	})
}

// TestRolesMatrixSeesAWrongGrant has privileges too many and too few as mutants: the check must name each.
func TestRolesMatrixSeesAWrongGrant(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		m := newMatrix(t, db)
		mutants := 0
		for _, mutant := range []struct{ part, change, back, cell string }{
			{
				"viewer", "GRANT SELECT (payload_json) ON {schema}.outbox_events TO",
				"REVOKE SELECT (payload_json) ON {schema}.outbox_events FROM", "read payloads",
			},
			{
				"producer", "GRANT INSERT (state) ON {schema}.outbox_events TO",
				"REVOKE INSERT (state) ON {schema}.outbox_events FROM", "insert an event with its state",
			},
			{
				"producer", "REVOKE INSERT (lane) ON {schema}.outbox_events FROM",
				"GRANT INSERT (lane) ON {schema}.outbox_events TO", "insert an event with its lane",
			},
			{
				"producer", "REVOKE EXECUTE ON FUNCTION {schema}.outbox_check_event FROM",
				"GRANT EXECUTE ON FUNCTION {schema}.outbox_check_event TO", "insert an event",
			},
			{
				"janitor", "GRANT SELECT ON {schema}.outbox_held TO", "REVOKE SELECT ON {schema}.outbox_held FROM",
				"read what is held",
			},
			{
				"viewer", "GRANT UPDATE (kind, due, since, version) ON {schema}.outbox_held TO",
				"REVOKE UPDATE (kind, due, since, version) ON {schema}.outbox_held FROM", "hold it in another way",
			},
			{
				"operator", "GRANT UPDATE (state) ON {schema}.outbox_events TO",
				"REVOKE UPDATE (state) ON {schema}.outbox_events FROM", "discard what is ready",
			},
			{
				"operator", "GRANT INSERT (action_id, verb, event_id, dlq_id, actor, reason) ON {schema}.outbox_actions TO",
				"REVOKE INSERT (action_id, verb, event_id, dlq_id, actor, reason) ON {schema}.outbox_actions FROM",
				"log an action",
			},
			{
				"operator", "GRANT EXECUTE ON FUNCTION {schema}.outbox_look TO",
				"REVOKE EXECUTE ON FUNCTION {schema}.outbox_look FROM", "look at an event",
			},
			{
				"operator", "REVOKE EXECUTE ON FUNCTION {schema}.outbox_act FROM",
				"GRANT EXECUTE ON FUNCTION {schema}.outbox_act TO", "skip by outbox_act",
			},
			{
				"operator", "GRANT DELETE ON {schema}.outbox_requests TO", "REVOKE DELETE ON {schema}.outbox_requests FROM",
				"delete a closed request",
			},
			{
				"janitor", "GRANT UPDATE (state, published_at) ON {schema}.outbox_events TO",
				"REVOKE UPDATE (state, published_at) ON {schema}.outbox_events FROM", "settle as published",
			},
			{
				"stranger", "GRANT EXECUTE ON FUNCTION {schema}.outbox_uuid7 TO",
				"REVOKE EXECUTE ON FUNCTION {schema}.outbox_uuid7 FROM", "call outbox_uuid7",
			},
			{
				"relay", "REVOKE SELECT ON SEQUENCE {schema}.outbox_events_seq_seq FROM",
				"GRANT SELECT ON SEQUENCE {schema}.outbox_events_seq_seq TO", "read the sequence",
			},
		} {
			db.Exec(t, mutant.change+" "+quote(m.roles[mutant.part]))
			if found := m.check(t).wrong; !slices.ContainsFunc(found,
				func(s string) bool { return strings.HasPrefix(s, mutant.part+": "+mutant.cell+":") }) {
				t.Errorf("%s %s: the matrix found %q", mutant.change, mutant.part, found)
			}
			db.Exec(t, mutant.back+" "+quote(m.roles[mutant.part]))
			mutants++
		}
		if left := m.check(t).wrong; len(left) > 0 {
			t.Errorf("taken back, the matrix finds %q", left)
		}
		figure(t, "mutant_grants_"+db.Name, mutants)
	})
}

// TestGrantRejectsOtherParts: a misspelt part is an error and grants nothing.
func TestGrantRejectsOtherParts(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		role := pgtest.NewRole(t, db.Server, "r")
		_, err := db.Pool.Exec(t.Context(), db.SQL("SELECT {schema}.outbox_grant('publisher', $1)"), role)
		if pgtest.SQLState(err) != "22023" ||
			!strings.Contains(err.Error(), "producer, relay, janitor, viewer, operator, reader") {
			t.Errorf("got %v", err)
		}
		if _, err := db.Pool.Exec(t.Context(),
			db.SQL("SELECT {schema}.outbox_grant('relay', 'nobody_of_this_name')")); pgtest.SQLState(err) != "42704" {
			t.Errorf("got %v", err)
		}
		if n := db.Count(t, "SELECT count(*) FROM pg_class, aclexplode(relacl) WHERE grantee = $1::regrole", role); n != 0 {
			t.Errorf("%d privileges were granted", n)
		}
	})
}

// TestRevokeAllTakesEverythingBack: the statements of docs/reference/schema.md that take a part back.
func TestRevokeAllTakesEverythingBack(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		before := readCatalog(t, db.Server, db.Schema)
		role := pgtest.NewRole(t, db.Server, "leaving")
		for _, part := range parts[:6] {
			db.Exec(t, "SELECT {schema}.outbox_grant($1, $2)", part, role)
		}
		if slices.Equal(before, readCatalog(t, db.Server, db.Schema)) {
			t.Fatal("nothing was granted")
		}
		for _, kind := range []string{"TABLES", "SEQUENCES", "FUNCTIONS"} {
			db.Exec(t, "REVOKE ALL ON ALL "+kind+" IN SCHEMA {schema} FROM "+quote(role))
		}
		db.Exec(t, "REVOKE ALL ON SCHEMA {schema} FROM "+quote(role))
		for i, line := range readCatalog(t, db.Server, db.Schema) {
			if strings.Contains(line, role) {
				t.Errorf("line %d: %s", i, line)
			}
		}
	})
}

// TestHardenedDefaults: where a database takes EXECUTE from everyone by default, each part still works.
func TestHardenedDefaults(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server pgtest.Server) {
		name := emptySchema(t, server, "hardened")
		owner := pgtest.NewRole(t, server, "owner")
		std := pgtest.OpenSQL(t, "pgx", server.URL)
		mustExec(t, std, "CREATE SCHEMA "+quote(name)+" AUTHORIZATION "+quote(owner))
		mustExec(t, std, "ALTER DEFAULT PRIVILEGES FOR ROLE "+quote(owner)+" REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC")
		asOwner := server
		asOwner.URL = pgtest.As(t, server.URL, owner)
		db := &pgtest.DB{Server: server, Schema: name, Pool: openPool(t, withParameter(t, asOwner.URL, "search_path", ""))}
		migrateUp(t, asOwner, schema.Options{Schema: name})
		for _, wrong := range newMatrix(t, db).check(t).wrong {
			t.Error(wrong)
		}
	})
}
