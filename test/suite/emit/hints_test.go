package emit

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

var hinted = outbox.Define[map[string]string](outbox.Contract{
	Type: "order_created", Aggregate: "order", Topic: "orders",
})

// What goes wrong on the first day says what to run, whatever the statement was.
func TestEmitSaysWhatToRun(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		role := pgtest.NewRole(t, p.Server, "stranger")
		p.Exec(t, "GRANT USAGE ON SCHEMA {schema} TO "+role)
		stranger := p.Open(t, pgtest.As(t, p.URL, role))
		event := hinted.New("1", map[string]string{"a": "b"})
		keyed := hinted.New("1", map[string]string{"a": "b"})
		keyed.DedupeKey = "k"
		for name, events := range map[string][]outbox.Event{"one": {event}, "with a key": {keyed}, "many": {event, keyed}} {
			tx := p.begin(t)
			_, err := outbox.Emit(t.Context(), outbox.InSchema(tx, "no_such_schema"), events...)
			wantHint(t, name, err, `there is no outbox in schema "no_such_schema"`, "run 'outboxctl migrate up'")

			foreign, err := stranger.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_, err = outbox.Emit(t.Context(), outbox.InSchema(foreign, p.Schema), events...)
			wantHint(t, name+", without rights", err, "run 'outboxctl grant producer ROLE'")
			if err := foreign.Rollback(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// wantHint wants an error of the database with advice at its end.
func wantHint(t *testing.T, name string, err error, advice ...string) {
	t.Helper()
	if failure := (*pgconn.PgError)(nil); !errors.As(err, &failure) {
		t.Errorf("%s: %v is not the database's", name, err)
		return
	}
	for _, want := range advice {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v does not say %q", name, err, want)
		}
	}
}
