package relay

import (
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// role makes a login role with the grants of a relay and returns the change that makes a relay use it.
func (p *env) role(t testing.TB, parts ...string) (string, func(*relay.Config)) {
	t.Helper()
	name := pgtest.NewRole(t, p.Server, "relay")
	for _, part := range parts {
		p.Exec(t, "SELECT {schema}.outbox_grant($1, $2)", part, name)
	}
	return name, func(config *relay.Config) { config.Database = pgtest.As(t, config.Database, name) }
}

// wantRejection runs a relay that must end by itself, with an error that says these things.
func (p *env) wantRejection(t testing.TB, says []string, change ...func(*relay.Config)) {
	t.Helper()
	r := p.launch(t, "refused", change...)
	eventually.True(t, "the end of Run", func() bool {
		select {
		case <-r.done:
			return true
		default:
			return false
		}
	})
	for _, words := range says {
		if r.err == nil || !strings.Contains(r.err.Error(), words) {
			t.Errorf("Run returned %v, want it to say %q", r.err, words)
		}
	}
}

// C22: row level security that hides events looks like an outbox without work, so it is refused in words.
func TestRowLevelSecurityThatHidesEventsIsRejected(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		name, asRole := p.role(t, "relay")
		p.emit(t, placed.New("1", note{}))
		p.Exec(t, "ALTER TABLE {schema}.outbox_events ENABLE ROW LEVEL SECURITY")
		p.wantRejection(t, []string{"row level security hides events", "CREATE POLICY"}, asRole)
		p.Exec(t, "CREATE POLICY half ON {schema}.outbox_events FOR ALL TO "+name+" USING (tenant_id = 'acme')")
		p.wantRejection(t, []string{"row level security hides events"}, asRole)
		// What the error says to do helps.
		p.Exec(t, "CREATE POLICY relay ON {schema}.outbox_events FOR ALL TO "+name+" USING (true)")
		p.start(t, "a", asRole)
		p.awaitPublished(t, 1)
	})
}

// A23: a schema that is not there, is too old or is not this role's is refused with what to do.
func TestASchemaThatDoesNotFitIsRejected(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		p.wantRejection(t, []string{`schema "nowhere"`, "outboxctl migrate up"}, func(config *relay.Config) {
			config.Schema = "nowhere"
		})
		_, asStranger := p.role(t)
		p.wantRejection(t, []string{"outboxctl grant relay"}, asStranger)
		p.Exec(t, "UPDATE {schema}.outbox_meta SET schema_version = 3")
		p.wantRejection(t, []string{"has version 3", "needs 9", "outboxctl migrate up"})
		// A newer one is additive.
		p.Exec(t, "UPDATE {schema}.outbox_meta SET schema_version = 99")
		p.emit(t, placed.New("1", note{}))
		p.start(t, "a")
		p.awaitPublished(t, 1)
	})
}

// A role that was granted before a migration lacks what that has added. The relay says so before it takes a lane, does
// not end, and goes on when it is granted: it would fail with every batch in which one publish does.
func TestARoleThatWasGrantedBeforeTheMigrationIsNamed(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		name, asRole := p.role(t, "relay")
		p.Exec(t, "REVOKE ALL ON {schema}.outbox_attempts, {schema}.outbox_minutes FROM "+name)
		p.Exec(t, "REVOKE INSERT (event_id, number, relay, class, topic, error), SELECT (event_id, number) ON "+
			"{schema}.outbox_attempts FROM "+name)
		p.emit(t, placed.New("1", note{}))
		a := p.start(t, "a", asRole)
		eventually.True(t, "the error in the log", func() bool {
			return strings.Contains(p.logs.text(), "outboxctl grant relay "+name) &&
				strings.Contains(p.logs.text(), "DELETE on outbox_attempts, INSERT on outbox_attempts, SELECT on outbox_attempts")
		})
		select {
		case <-a.done:
			t.Fatalf("it gave up: %v", a.err)
		default:
		}
		if p.broker.count() > 0 {
			t.Error("it published")
		}
		p.Exec(t, "SELECT {schema}.outbox_grant('relay', $1)", name)
		p.awaitPublished(t, 1)
	})
}

// C21: where the database takes no writes, as a standby, the relay says so, does not end, publishes nothing, and goes
// on when the primary is back. A server in recovery and a role that may not write answer alike, with 25006.
func TestADatabaseThatTakesNoWritesIsNamedAndOutlived(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		name, asRole := p.role(t, "relay")
		p.Exec(t, "ALTER ROLE "+name+" SET default_transaction_read_only = on")
		p.emit(t, placed.New("1", note{}))
		a := p.start(t, p.Schema, asRole)
		eventually.True(t, "the error in the log", func() bool {
			return strings.Contains(p.logs.text(), "read-only transaction")
		})
		select {
		case <-a.done:
			t.Fatalf("it gave up: %v", a.err)
		default:
		}
		if p.broker.count() > 0 {
			t.Error("it published without a lease")
		}
		p.Exec(t, "ALTER ROLE "+name+" RESET default_transaction_read_only")
		p.terminate(t, p.Schema)
		p.awaitPublished(t, 1)
		p.wantDelivered(t)
	})
}
