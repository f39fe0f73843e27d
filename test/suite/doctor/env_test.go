package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator/doctor"
	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
	"github.com/posthaste-dev/posthaste/test/kit/leases"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/process"
)

func TestMain(m *testing.M) { os.Exit(goroutines.Run(m, goroutines.Linked)) }

// build compiles outboxctl as a user would, and returns its folder.
func build(t testing.TB) string {
	t.Helper()
	binary, err := process.Built(t.Context(), "cmd/outboxctl")
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(binary)
}

// env is a database of its own with an outbox that is well: roles of every part, a relay that holds all lanes, and
// retention that ran just now.
type env struct {
	t        *testing.T
	server   string // its name
	bin, url string
	database string
	schema   string
	roles    map[string]string
	admin    *pgx.Conn
	variable []string // of the environment, more than the database
}

// outboxName needs quotes wherever it stands.
const outboxName = `Shop "1"`

// onEach runs a test against a database of its own on every server.
func onEach(t *testing.T, test func(t *testing.T, e *env)) {
	t.Helper()
	bin := build(t)
	for _, server := range pgtest.Servers() {
		t.Run(server.Name, func(t *testing.T) {
			t.Parallel()
			test(t, newEnv(t, server, bin))
		})
	}
}

func newEnv(t *testing.T, server pgtest.Server, bin string) *env {
	t.Helper()
	e := &env{
		t: t, server: server.Name, bin: bin, database: pgtest.NewName("doctor"), schema: outboxName,
		roles: map[string]string{},
	}
	for _, part := range []string{"producer", "relay", "janitor", "viewer", "operator", "reader", "stranger"} {
		e.roles[part] = pgtest.NewRole(t, server, part) // goes after the database, which has grants for it
	}
	std := pgtest.OpenSQL(t, "pgx", server.URL)
	if _, err := std.ExecContext(t.Context(), "CREATE DATABASE "+e.database+" TEMPLATE template0 ENCODING "+
		"'UTF8'"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := std.ExecContext(context.Background(), "DROP DATABASE "+e.database+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	parsed, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	parsed.Path = "/" + e.database
	e.url = parsed.String()
	if err := schema.Outbox.Up(t.Context(), pgtest.OpenSQL(t, "pgx", e.url),
		schema.Options{Schema: e.schema}); err != nil {
		t.Fatal(err)
	}
	e.admin = e.connect(e.url)
	for part, role := range e.roles {
		if part != "stranger" {
			e.exec("SELECT {schema}.outbox_grant($1, $2)", part, role)
		}
	}
	e.exec(`SELECT {schema}.outbox_emit('order_created', 'order', i::text, '{}') FROM generate_series(1, 20) i`)
	e.exec(`INSERT INTO {schema}.outbox_identity (system_identifier, timeline)
		SELECT system_identifier, ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer
		FROM pg_control_system()`)
	e.exec("UPDATE {schema}.outbox_retention SET ran_at = now(), cut_off = now() - interval '30 days'")
	e.staff()
	return e
}

// staff has one relay hold all lanes.
func (e *env) staff() {
	e.t.Helper()
	id := newID()
	e.exec(leases.Join, id, "steady", "1 day")
	e.exec(leases.Hold, id)
}

func newID() string { return outbox.NewID().String() }

func (e *env) connect(address string) *pgx.Conn {
	e.t.Helper()
	conn, err := pgx.Connect(e.t.Context(), address)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func (e *env) sql(statement string) string {
	statement = strings.NewReplacer("{schema}", pgx.Identifier{e.schema}.Sanitize(), "{database}",
		e.database).Replace(statement)
	for part, role := range e.roles {
		statement = strings.ReplaceAll(statement, "{"+part+"}", role)
	}
	return statement
}

func (e *env) exec(statement string, args ...any) {
	e.t.Helper()
	if _, err := e.admin.Exec(e.t.Context(), e.sql(statement), args...); err != nil {
		e.t.Fatalf("%s: %v", statement, err)
	}
}

// open begins a transaction of another session, and leaves it open.
func (e *env) open(statements ...string) {
	e.t.Helper()
	conn := e.connect(e.url)
	for _, statement := range statements {
		if _, err := conn.Exec(e.t.Context(), e.sql(statement)); err != nil {
			e.t.Fatalf("%s: %v", statement, err)
		}
	}
}

// environment is that of a person at a shell.
func (e *env) environment(address string) []string {
	return append([]string{
		"POSTHASTE_DATABASE_URL=" + address, "USER=ada", "PATH=" + e.bin + ":" + os.Getenv("PATH"), "HOME=" + e.t.TempDir(),
	}, e.variable...)
}

// run runs a program with this environment, and returns its exit code and what it printed.
func (e *env) run(address, input, program string, args ...string) (code int, stdout, stderr string) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), eventually.Patience)
	defer cancel()
	command := exec.CommandContext(ctx, program, args...)
	command.Env, command.Stdin = e.environment(address), strings.NewReader(input)
	var out, said bytes.Buffer
	command.Stdout, command.Stderr = &out, &said
	var exit *exec.ExitError
	if err := command.Run(); err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		e.t.Fatalf("%s %q: %v, %v\n%s%s", program, args, err, ctx.Err(), &out, &said)
	}
	return command.ProcessState.ExitCode(), out.String(), said.String()
}

// doctor has the outbox looked at. Transactions are old at once.
func (e *env) doctor(address string, args ...string) doctor.Report {
	e.t.Helper()
	args = append([]string{"doctor", "-o", "json", "--old-transaction", "1ms"}, args...)
	if !slices.Contains(args, "--schema") {
		args = append(args, "--schema", e.schema)
	}
	code, stdout, stderr := e.run(address, "", filepath.Join(e.bin, "outboxctl"), args...)
	var report doctor.Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		e.t.Fatalf("%q: exit code %d: %v\n%s%s", args, code, err, stdout, stderr)
	}
	if want := min(len(report.Findings), 1); code != want {
		e.t.Errorf("%q: exit code %d, want %d\n%s", args, code, want, stderr)
	}
	return report
}

// mustBeWell: the doctor says one line.
func (e *env) mustBeWell() {
	e.t.Helper()
	code, stdout, stderr := e.run(e.url, "", filepath.Join(e.bin, "outboxctl"), "doctor", "--schema", e.schema)
	const want = "no findings (left out: the broker: no configuration of outbox-publisher is given (--config FILE))\n"
	if code != 0 || stdout != want || stderr != "" {
		e.t.Fatalf("a healthy outbox: exit code %d\n%s%s", code, stdout, stderr)
	}
}

// codes are those of the findings, each once.
func codes(report doctor.Report) (found []string) {
	for _, finding := range report.Findings {
		found = append(found, finding.Code)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// apply does what a finding says, word by word: in psql, or in a shell.
func (e *env) apply(finding doctor.Finding) {
	e.t.Helper()
	var code int
	var stdout, stderr string
	switch finding.FixWith {
	case doctor.WithSQL:
		code, stdout, stderr = e.run(e.url, finding.Fix+"\n", "psql", "-v", "ON_ERROR_STOP=1", "-q", e.url)
	case doctor.WithCommand:
		code, stdout, stderr = e.run(e.url, "", "sh", "-c", finding.Fix)
	default:
		e.t.Fatalf("%s has no fix: %s", finding.Code, finding.Advice)
	}
	if code != 0 {
		e.t.Errorf("%s: %s: exit code %d\n%s%s", finding.Code, finding.Fix, code, stdout, stderr)
	}
}

// withQuery and withPath change a server's URL.
func withQuery(t testing.TB, address, name, value string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	query := parsed.Query()
	query.Set(name, value)
	parsed.RawQuery = query.Encode()
	return parsed.String()
}

func withPath(t testing.TB, address, path string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	parsed.Path = path
	return parsed.String()
}
