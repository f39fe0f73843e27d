package emit

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/corpus"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// isolated gives the place a producer role that is held to its tenant.
func (p env) isolated(t testing.TB) (role string) {
	t.Helper()
	script, err := os.ReadFile("../../../schema/optional/tenant_isolation.sql")
	if err != nil {
		t.Fatal(err)
	}
	role = pgtest.NewName("producer")
	t.Cleanup(func() {
		_, _ = p.pool.Exec(context.Background(), "DROP OWNED BY "+role)
		if _, err := p.pool.Exec(context.Background(), "DROP ROLE "+role); err != nil {
			t.Errorf("drop the test's role: %v", err)
		}
	})
	conn, err := pgx.Connect(t.Context(), p.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	for _, statement := range []string{
		"SET search_path = " + p.Schema, string(script), "CREATE ROLE " + role,
		"SELECT outbox_grant('producer', '" + role + "')",
		// Twice is as good as once.
		"SELECT outbox_isolate_tenants('" + role + "')", "SELECT outbox_isolate_tenants('" + role + "')",
		"GRANT INSERT ON orders TO " + role,
	} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%.60s: %v", statement, err)
		}
	}
	return role
}

// beginAs starts a transaction of the role, for this tenant.
func (p env) beginAs(t testing.TB, role, tenant string) pgx.Tx {
	t.Helper()
	tx := p.begin(t)
	if _, err := tx.Exec(t.Context(), "SET LOCAL ROLE "+role); err != nil {
		t.Fatal(err)
	}
	if tenant != "" {
		if _, err := tx.Exec(t.Context(), "SET LOCAL outbox.tenant_id = '"+tenant+"'"); err != nil {
			t.Fatal(err)
		}
	}
	return tx
}

func TestFaultA24TenantMissingOrSpoofed(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		role := p.isolated(t)
		plain := corpus.OrderCreated(`{}`)
		forms := map[string]func(tenant string) []corpus.Given{
			"one":         func(tenant string) []corpus.Given { return []corpus.Given{plain.Of(tenant)} },
			"many":        func(tenant string) []corpus.Given { return []corpus.Given{plain.Of(tenant), plain.Of(tenant)} },
			"one deduped": func(tenant string) []corpus.Given { return []corpus.Given{plain.Of(tenant).WithKey(tenant + "/k")} },
			"many deduped": func(tenant string) []corpus.Given {
				return []corpus.Given{plain.Of(tenant).WithKey(tenant + "/m"), plain.Of(tenant)}
			},
		}
		events := 0
		for form, build := range forms {
			for _, c := range []struct{ what, session, event string }{
				{"tenant of another", "acme", "other"},
				{"tenant missing", "acme", ""},
				{"no tenant in the session", "", "acme"},
				{"no tenant anywhere", "", ""},
			} {
				tx := p.beginAs(t, role, c.session)
				all := build(c.event)
				if strings.HasPrefix(all[0].Key, "/") {
					all[0].Key = "k"
				}
				_, err := corpus.Emit(t.Context(), tx, p.Schema, all)
				if sqlState(err) != "42501" {
					t.Errorf("%s: %s: want 42501, got %v", form, c.what, err)
				}
				_ = tx.Rollback(t.Context())
			}
			tx := p.beginAs(t, role, "acme")
			if _, err := corpus.Emit(t.Context(), tx, p.Schema, build("acme")); err != nil {
				t.Errorf("%s: the tenant's own event: %v", form, err)
			}
			mustCommit(t, tx)
			events += len(build("acme"))
		}
		p.wantRows(t, 0, events, 2)
		p.wantIsolatedKeys(t, role)
	})
}

// wantIsolatedKeys: two tenants with the same words do not meet, and neither sees the keys of the other.
func (p env) wantIsolatedKeys(t *testing.T, role string) {
	t.Helper()
	for _, tenant := range []string{"acme", "other"} {
		tx := p.beginAs(t, role, tenant)
		for turn, created := range []bool{true, false} {
			receipts := p.mustEmit(t, tx, corpus.OrderCreated(`{}`).Of(tenant).WithKey(tenant+"/same"))
			if receipts[0].Created != created {
				t.Errorf("%s, turn %d: created=%v", tenant, turn, receipts[0].Created)
			}
		}
		var foreign int
		if err := tx.QueryRow(t.Context(), p.SQL("SELECT count(*) FROM {schema}.outbox_dedupe WHERE tenant_id <> $1"),
			tenant).Scan(&foreign); err != nil {
			t.Fatal(err)
		}
		if foreign != 0 {
			t.Errorf("%s sees %d keys of others", tenant, foreign)
		}
		mustCommit(t, tx)
	}
}

func sqlState(err error) string {
	var state interface{ SQLState() string }
	if !errors.As(err, &state) {
		return ""
	}
	return state.SQLState()
}

// A producer that may read as well sees what its tenant's events wait for, and of others not even that they wait.
func TestFaultA24HeldEventsOfOthers(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		role := p.isolated(t)
		p.Exec(t, "SELECT {schema}.outbox_grant('viewer', '"+role+"')")
		for _, tenant := range []string{"acme", "other", ""} {
			p.committed(t, corpus.OrderCreated(`{}`).Of(tenant))
		}
		p.Exec(t, "UPDATE {schema}.outbox_events SET state = 1")
		p.Exec(t, `
			INSERT INTO {schema}.outbox_held (lane, seq, kind, due, namespace, event_type, aggregate_type, aggregate_id)
			SELECT lane, seq, 1, now(), namespace, event_type, aggregate_type, aggregate_id FROM {schema}.outbox_events`)
		for _, table := range []string{"outbox_events", "outbox_held", "outbox_status"} {
			for session, want := range map[string]int{"acme": 1, "other": 1, "nobody": 0, "": 0} {
				tx := p.beginAs(t, role, session)
				var seen int
				if err := tx.QueryRow(t.Context(), p.SQL("SELECT count(seq) FROM {schema}."+table)).Scan(&seen); err != nil {
					t.Fatal(err)
				}
				if seen != want {
					t.Errorf("%s: the session of tenant %q sees %d rows, want %d", table, session, seen, want)
				}
				_ = tx.Rollback(t.Context())
			}
		}
	})
}

// Nobody but the producers is bound: a relay must see the events of all tenants.
func TestFaultA24OthersAreNotBound(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		p.isolated(t)
		p.committed(t, corpus.OrderCreated(`{}`).Of("acme"))
		p.committed(t, corpus.OrderCreated(`{}`))
		relay := pgtest.NewName("relay")
		p.Exec(t, "CREATE ROLE "+relay)
		t.Cleanup(func() {
			_, _ = p.pool.Exec(context.Background(), "DROP OWNED BY "+relay)
			_, _ = p.pool.Exec(context.Background(), "DROP ROLE "+relay)
		})
		p.Exec(t, "SELECT {schema}.outbox_grant('relay', '"+relay+"')")
		tx := p.beginAs(t, relay, "")
		for _, statement := range []string{
			"UPDATE {schema}.outbox_events SET state = 1",
			`INSERT INTO {schema}.outbox_held (lane, seq, kind, due, namespace, event_type, aggregate_type, aggregate_id)
				SELECT lane, seq, 1, now(), namespace, event_type, aggregate_type, aggregate_id FROM {schema}.outbox_events`,
			"UPDATE {schema}.outbox_held SET kind = 2, version = DEFAULT",
			"DELETE FROM {schema}.outbox_held",
		} {
			changed, err := tx.Exec(t.Context(), p.SQL(statement))
			if err != nil {
				t.Fatal(err)
			}
			if changed.RowsAffected() != 2 {
				t.Errorf("the relay changes %d of 2 events: %s", changed.RowsAffected(), statement)
			}
		}
	})
}

func TestFaultA24ContractRequiresTenant(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		event := corpus.OrderCreated(`{}`)
		event.Contract.RequireTenant = true
		counted, statements := counting(t.Context())
		tx := p.begin(t)
		_, err := corpus.Emit(counted, tx, p.Schema, []corpus.Given{event})
		if !errors.Is(err, outbox.ErrRefused) || statements.Load() != 0 {
			t.Errorf("want a refusal before any statement, got %v after %d", err, statements.Load())
		}
		p.mustEmit(t, tx, event.Of("acme"))
		mustCommit(t, tx)
		p.wantRows(t, 0, 1, 0)
	})
}
