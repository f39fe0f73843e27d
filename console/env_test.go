package console_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/console"
	"github.com/posthaste-dev/posthaste/console/access"
	"github.com/posthaste-dev/posthaste/internal/serverstest"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/relaytest"
)

func TestMain(m *testing.M) { os.Exit(m.Run()) }

// env is a console over an outbox, with the grants of a database role that operates and reads.
type env struct {
	t       *testing.T
	admin   *pgxpool.Pool
	schema  string
	outbox  console.Outbox
	console *console.Console
	log     *bytes.Buffer
}

func onEachServer(t *testing.T, test func(t *testing.T, e *env)) {
	t.Helper()
	serverstest.OnEach(t, func(t *testing.T, address string) { test(t, newEnv(t, address, "operator", "reader")) })
}

func newEnv(t *testing.T, address string, parts ...string) *env {
	t.Helper()
	e := &env{t: t, log: &bytes.Buffer{}}
	e.admin, e.schema = relaytest.Database(t, address)
	role := "console_" + e.schema
	e.exec("CREATE ROLE " + role + " LOGIN")
	t.Cleanup(func() { // before the schema and the pool go
		for _, statement := range []string{"DROP OWNED BY ", "DROP ROLE "} {
			if _, err := e.admin.Exec(context.Background(), statement+role); err != nil {
				t.Error(err)
			}
		}
	})
	for _, part := range parts {
		e.exec("SELECT {schema}.outbox_grant($1, $2)", part, role)
	}
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	parsed.User = url.User(role)
	pool, err := console.OpenPool(t.Context(), parsed.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	registry, err := outbox.NewRegistry(outbox.Define[struct {
		Total int `json:"total"`
	}](outbox.Contract{Type: "order_checked", Aggregate: "order", Topic: "orders"}))
	if err != nil {
		t.Fatal(err)
	}
	e.outbox = console.Outbox{Name: "shop", DB: pool, Schema: e.schema, Check: registry.Check}
	e.serve()
	return e
}

// serve makes the console of the outbox, with parts of payloads masked.
func (e *env) serve(mask ...string) {
	e.t.Helper()
	var err error
	e.outbox.Mask = mask
	e.console, err = console.New(console.Config{
		Outboxes: []console.Outbox{e.outbox},
		Log:      slog.New(slog.NewTextHandler(e.log, nil)),
	})
	if err != nil {
		e.t.Fatal(err)
	}
}

func (e *env) sql(statement string) string {
	return strings.ReplaceAll(statement, "{schema}", pgx.Identifier{e.schema}.Sanitize())
}

func (e *env) exec(statement string, args ...any) {
	e.t.Helper()
	if _, err := e.admin.Exec(e.t.Context(), e.sql(statement), args...); err != nil {
		e.t.Fatalf("%s: %v", statement, err)
	}
}

func (e *env) one(query string, args ...any) (answer string) {
	e.t.Helper()
	if err := e.admin.QueryRow(e.t.Context(), e.sql(query), args...).Scan(&answer); err != nil {
		e.t.Fatalf("%s: %v", query, err)
	}
	return answer
}

// event is what a test emits.
type event struct {
	aggregate, kind, tenant, payload, headers, failure string
}

// emit writes an event that is ready.
func (e *env) emit(of event) outbox.ID {
	e.t.Helper()
	id := outbox.NewID()
	if of.payload == "" {
		of.payload = `{"eventId":"%s","data":{"total":12345678901234567890}}`
	}
	if of.kind == "" {
		of.kind = "order_created"
	}
	e.exec(`INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, tenant_id, payload_json,
			headers)
		VALUES ($1::text::uuid, $2, 'order', $3, nullif($4, ''), $5::text::json, nullif($6, '')::json)`, id.String(), of.kind,
		of.aggregate, of.tenant, strings.ReplaceAll(of.payload, "%s", id.String()), of.headers)
	return id
}

// dead writes an event that has died and blocks its aggregate, as a relay would have left it.
func (e *env) dead(of event) outbox.ID {
	e.t.Helper()
	id := e.emit(of)
	e.exec(`UPDATE {schema}.outbox_events SET state = 1, attempt_count = 3, last_error = $2 WHERE id = $1`, id.String(),
		of.failure)
	e.exec(`INSERT INTO {schema}.outbox_held (lane, seq, kind, namespace, event_type, aggregate_type, aggregate_id)
		SELECT lane, seq, 4, namespace, event_type, aggregate_type, aggregate_id FROM {schema}.outbox_events WHERE id = $1`,
		id.String())
	e.exec(`INSERT INTO {schema}.outbox_dlq (event_seq, event_id, created_at, attempts, blocking, namespace, tenant_id,
			event_type, aggregate_type, aggregate_id, topic, error_reason, error_detail, payload_json, headers)
		SELECT seq, id, created_at, 3, true, namespace, tenant_id, event_type, aggregate_type, aggregate_id, 'orders',
			'max_attempts', $2, payload_json, headers FROM {schema}.outbox_events WHERE id = $1`, id.String(), of.failure)
	return id
}

// left writes a dead letter of which retention has deleted the event, after somebody had discarded it.
func (e *env) left(of event) outbox.ID {
	e.t.Helper()
	id := e.dead(of)
	e.exec(`INSERT INTO {schema}.outbox_actions (action_id, verb, event_id, dlq_id, actor, reason)
		SELECT gen_random_uuid(), 'discard', event_id, id, 'olga', 'nobody needs it' FROM {schema}.outbox_dlq
		 WHERE event_id = $1`, id.String())
	e.exec(`DELETE FROM {schema}.outbox_held USING {schema}.outbox_events e WHERE e.id = $1 AND outbox_held.seq = e.seq`,
		id.String())
	e.exec(`UPDATE {schema}.outbox_events SET state = 7 WHERE id = $1`, id.String())
	e.exec(`DELETE FROM {schema}.outbox_events WHERE id = $1`, id.String())
	e.exec(`UPDATE {schema}.outbox_retention SET cut_off = clock_timestamp(), deleted = deleted + 1
		WHERE kind = 'published'`)
	return id
}

// looks is who has looked at the payload of an event, as the log has it.
func (e *env) looks(id outbox.ID) string {
	e.t.Helper()
	return e.one(`SELECT coalesce(string_agg(actor, ' ' ORDER BY id), 'nobody') FROM {schema}.outbox_actions
		WHERE verb = 'look' AND event_id = $1`, id.String())
}

// answer is what the console said.
type answer struct {
	status int
	body   string
	header http.Header
}

// as makes a request as a user; a form makes it a POST.
func (e *env) as(user access.User, target string, form url.Values) answer {
	e.t.Helper()
	method, body := http.MethodGet, io.Reader(nil)
	if form != nil {
		method, body = http.MethodPost, strings.NewReader(form.Encode())
	}
	r := httptest.NewRequestWithContext(e.t.Context(), method, target, body)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if user.Name != "" {
		r = r.WithContext(access.With(r.Context(), user))
	}
	w := httptest.NewRecorder()
	e.console.ServeHTTP(w, r)
	return answer{w.Code, w.Body.String(), w.Result().Header}
}

var (
	viewer   = access.User{Name: "vera", Role: access.Viewer}
	operates = access.User{Name: "olga", Role: access.Operator, Payloads: true}
)

// sees demands a page with all of these texts.
func (e *env) sees(user access.User, target string, texts ...string) string {
	e.t.Helper()
	got := e.as(user, target, nil)
	if got.status != http.StatusOK {
		e.t.Fatalf("%s: %d: %s\n%s", target, got.status, text(got.body), e.log)
	}
	for _, want := range texts {
		if !strings.Contains(got.body, want) {
			e.t.Errorf("%s does not show %q:\n%s", target, want, text(got.body))
		}
	}
	return got.body
}

// does demands that a form is accepted.
func (e *env) does(user access.User, target string, pairs ...string) answer {
	e.t.Helper()
	got := e.as(user, target, form(pairs...))
	if got.status != http.StatusOK && got.status != http.StatusSeeOther {
		e.t.Fatalf("%s: %d: %s\n%s", target, got.status, text(got.body), e.log)
	}
	return got
}

func form(pairs ...string) url.Values {
	values := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		values.Add(pairs[i], pairs[i+1])
	}
	if !values.Has("action") {
		values.Set("action", outbox.NewID().String())
	}
	return values
}

// text is a page without its markup, for messages.
func text(body string) string {
	var out strings.Builder
	inside := false
	for _, r := range body {
		switch {
		case r == '<':
			inside = true
		case r == '>':
			inside = false
		case !inside:
			out.WriteRune(r)
		}
	}
	return strings.Join(strings.Fields(out.String()), " ")
}

func path(format string, args ...any) string { return "/o/shop/" + fmt.Sprintf(format, args...) }
