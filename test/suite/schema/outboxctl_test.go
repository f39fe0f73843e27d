package schema

import (
	"bytes"
	"errors"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/process"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

// A tool is the built outboxctl, pointed at one server.
type tool struct {
	binary, url string
}

// build compiles outboxctl as a user would.
func build(t testing.TB) string {
	t.Helper()
	binary, err := process.Built(t.Context(), "cmd/outboxctl")
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// run calls it with the database in the environment and returns exit code, output and errors.
func (o tool) run(t testing.TB, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), o.binary, args...)
	command.Env = []string{"POSTHASTE_DATABASE_URL=" + o.url, "DATABASE_URL=postgres://nobody@127.0.0.1:1/wrong"}
	var out, said bytes.Buffer
	command.Stdout, command.Stderr = &out, &said
	var exit *exec.ExitError
	if err := command.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), out.String(), said.String()
}

// must calls it and wants it to succeed and to print what the expression says.
func (o tool) must(t testing.TB, want string, args ...string) string {
	t.Helper()
	code, stdout, stderr := o.run(t, args...)
	if code != 0 || stderr != "" || !regexp.MustCompile(`(?s)\A`+want+`\z`).MatchString(stdout) {
		t.Fatalf("%q: exit code %d, want 0 and %s\n%s%s", args, code, want, stdout, stderr)
	}
	return stdout
}

// mustFail calls it and wants an exit code and an error.
func (o tool) mustFail(t testing.TB, wantCode int, want string, args ...string) {
	t.Helper()
	if code, stdout, stderr := o.run(t, args...); code != wantCode || !strings.Contains(stderr, want) {
		t.Errorf("%q: exit code %d, want %d and %q\n%s%s", args, code, wantCode, want, stdout, stderr)
	}
}

// TestOutboxctl walks through an installation with the real binary: look, install, grant, go back.
func TestOutboxctl(t *testing.T) {
	t.Parallel()
	binary := build(t)
	onEach(t, func(t *testing.T, server pgtest.Server) {
		ctl, name := tool{binary, server.URL}, emptySchema(t, server, "Ctl 1")
		role := pgtest.NewRole(t, server, "app")
		ctl.mustFail(t, 1, "run 'outboxctl migrate up --schema", "grant", "relay", role, "--schema", name)
		ctl.must(t, `schema `+name+` is at version 0 of 12\n(  missing  000\d\d_\w+\n){12}`, "migrate", "status",
			"--schema", name)

		script := ctl.must(t, `\\set ON_ERROR_STOP on\n.*COMMIT;\n\n`, "migrate", "up", "--dry-run", "--schema", name)
		if left := readCatalog(t, server, name); len(left) > 0 {
			t.Error("the dry run changed something")
		}
		ctl.must(t,
			`applied 00001_events in \S+\napplied 00002_emit in \S+\nschema `+name+` is at version 2: 2 migrations in \S+\n`,
			"migrate", "up", "--target", "2", "--schema", name)
		ctl.must(t, `(applied \S+ in \S+\n){10}schema `+name+` is at version 12: 10 migrations in \S+\n`, "migrate", "up",
			"--schema", name)
		ctl.must(t, `schema `+name+` is at version 12: 0 migrations in \S+\n`, "migrate", "up", "--schema", name)
		ctl.must(t, `schema `+name+` is at version 12 of 12\n(  applied  000\d\d_\w+\n){12}`, "migrate", "status",
			"--schema", name)
		readCatalog(t, server, name).mustEqual(t, reference(t, server, 0))

		ctl.must(t, `role `+role+` is now producer in schema `+name+`\n`, "grant", "producer", role, "--schema", name)
		if _, err := openPool(t, pgtest.As(t, server.URL, role)).Exec(t.Context(),
			"SELECT "+quote(name)+".outbox_emit('order_created', 'order', '1', '{}')"); err != nil {
			t.Errorf("the producer cannot emit: %v", err)
		}
		ctl.mustFail(t, 1, "create the role first: CREATE ROLE \"nobody of that name\" LOGIN", "grant", "relay",
			"nobody of that name", "--schema", name)

		ctl.mustFail(t, 2, "--yes-delete-everything", "migrate", "down", "--target", "0", "--schema", name)
		ctl.must(t, `took back 00012_access in \S+\ntook back 00011_erasure in \S+\ntook back 00010_jobs in \S+\n`+
			`took back 00009_redelivery in \S+\ntook back 00008_history in \S+\n`+
			`took back 00007_pause in \S+\ntook back 00006_retention in \S+\ntook `+
			`back 00005_identity in \S+\nschema `+name+` is at version 4: 8 migrations in \S+\n`,
			"migrate", "down", "--target", "4", "--schema", name)
		ctl.must(t, `(took back \S+ in \S+\n){4}schema `+name+` is at version 0: 4 migrations in \S+\n`, "migrate", "down",
			"--target", "0", "--yes-delete-everything", "--schema", name)

		if err := psql(t, server.URL, "DROP SCHEMA "+quote(name)+" CASCADE;"+script); err != nil {
			t.Error(err)
		}
		readCatalog(t, server, name).mustEqual(t, reference(t, server, 0))
	})
}

// TestOutboxctlBehindPgBouncer: in transaction mode, without a setting of the user's.
func TestOutboxctlBehindPgBouncer(t *testing.T) {
	t.Parallel()
	server := pgtest.Servers()[0]
	ctl, name := tool{build(t), services.PgBouncer18()}, emptySchema(t, server, "ctl")
	role := pgtest.NewRole(t, server, "app")
	for range 5 { // so that the pooler hands out more than one connection
		ctl.must(t, `(applied \S+ in \S+\n){12}schema .*\n`, "migrate", "up", "--schema", name)
		ctl.must(t, `role .*\n`, "grant", "operator", role, "--schema", name)
		ctl.must(t, `(took back \S+ in \S+\n){11}schema .*\n`, "migrate", "down", "--target", "1", "--schema", name)
		ctl.must(t, `took back \S+ in \S+\nschema .*\n`, "migrate", "down", "--target", "0", "--yes-delete-everything",
			"--schema", name)
	}
}

// TestOutboxctlPausesAndResumes with the grants of an operator, and says what stands in the way.
func TestOutboxctlPausesAndResumes(t *testing.T) {
	t.Parallel()
	binary := build(t)
	onEach(t, func(t *testing.T, server pgtest.Server) {
		name := emptySchema(t, server, "ctl")
		role := pgtest.NewRole(t, server, "oncall")
		ctl := tool{binary, pgtest.As(t, server.URL, role)}
		do := func(words ...string) []string { return append(words, "--schema", name) }
		admin := tool{binary, server.URL}
		admin.must(t, `.*`, do("migrate", "up", "--target", "6")...)
		admin.mustFail(t, 1, "run 'outboxctl migrate up --schema", do("pauses")...)
		admin.must(t, `.*`, do("migrate", "up")...)
		ctl.mustFail(t, 4, "outboxctl grant operator ROLE", do("pauses")...)
		admin.must(t, `.*`, do("grant", "operator", role)...)

		ctl.must(t, `operators have paused nothing\n`, do("pauses")...)
		why := []string{"--actor", "ada", "--reason", "the consumers are broken"}
		ctl.must(t, `topic orders is paused: no relay publishes it from about a second on\n`,
			do(append(why, "topics", "pause", "orders")...)...)
		ctl.must(t, `all is paused: .*\n`, do(append(why, "pause", "--all")...)...)
		const stands = `topic orders is paused by ada since 20\S+Z: the consumers are broken\n`
		ctl.must(t, stands+`all is paused by ada .*\n`, do("pauses")...)
		ctl.mustFail(t, 1, "topic orders is paused already\ntopic orders is paused by ada since",
			do(append(why, "topics", "pause", "orders")...)...)
		ctl.mustFail(t, 1, "type order_created is not paused\ntopic orders is paused by ada since",
			do("resume", "--type", "order_created", "--actor", "bob", "--reason", "x")...)
		ctl.must(t, `all is resumed: the relays go on within about a second\n`,
			do("resume", "--all", "--actor", "bob", "--reason", "x")...)
		ctl.must(t, stands, do("pauses")...)
		again := []string{
			"topics", "resume", "orders", "--actor", "bob", "--reason", "x", "--action", "01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e",
		}
		ctl.must(t, `topic orders is resumed: .*\n`, do(again...)...)
		ctl.must(t, `the resume of topic orders was done before by this action, .* what stands:\n`+
			`operators have paused nothing\n`, do(again...)...)
		paused := slices.Concat(why,
			[]string{"topics", "pause", "orders", "--action", "01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7f"})
		ctl.must(t, `topic orders is paused: .*\n`, do(paused...)...)
		ctl.must(t, `topic orders is resumed: .*\n`, do("topics", "resume", "orders", "--reason", "x")...)
		ctl.must(t, `the pause of topic orders was done before by this action, .* what stands:\n`+
			`operators have paused nothing\n`, do(paused...)...)
		ctl.mustFail(t, 1, "nothing is paused because of a restore",
			do("resume", "--restored", "--actor", "bob", "--reason", "x")...)
		admin.must(t, `.*`, do("grant", "relay", role)...)
		if _, err := openPool(t, pgtest.As(t, server.URL, role)).Exec(t.Context(),
			"INSERT INTO "+quote(name)+".outbox_identity (system_identifier, timeline) VALUES (1, 1)"); err != nil {
			t.Fatal(err)
		}
		ctl.must(t, `restored is resumed: .*\n`, do("resume", "--restored", "--actor", "bob", "--reason", "on purpose")...)
	})
}

// TestOutboxctlLimitsTopics with the grants of an operator, and lists what stands with those of a viewer.
func TestOutboxctlLimitsTopics(t *testing.T) {
	t.Parallel()
	binary := build(t)
	onEach(t, func(t *testing.T, server pgtest.Server) {
		name := emptySchema(t, server, "ctl")
		role, viewer := pgtest.NewRole(t, server, "oncall"), pgtest.NewRole(t, server, "viewer")
		ctl, look := tool{binary, pgtest.As(t, server.URL, role)}, tool{binary, pgtest.As(t, server.URL, viewer)}
		do := func(words ...string) []string { return append(words, "--schema", name) }
		admin := tool{binary, server.URL}
		admin.must(t, `.*`, do("migrate", "up")...)
		admin.must(t, `.*`, do("grant", "operator", role)...)
		admin.must(t, `.*`, do("grant", "viewer", viewer)...)
		limit := func(words ...string) []string {
			return do(append([]string{"topics", "limit", "--actor", "ada"}, words...)...)
		}
		look.mustFail(t, 4, "outboxctl grant operator ROLE", limit("orders", "200", "--reason", "slowly")...)
		ctl.mustFail(t, 1, "topic orders has no limit", limit("orders", "none", "--reason", "x")...)
		ctl.mustFail(t, 2, "--reason is missing", limit("orders", "200")...)
		ctl.mustFail(t, 2, `"0" is no limit`, limit("orders", "0")...)
		ctl.must(t, `topic orders is limited to 200 per second, by all relays together, from about a second on\n`,
			limit("orders", "200", "--reason", "slowly")...)
		ctl.mustFail(t, 1, "is limited to 200 per second already", limit("orders", "200", "--reason", "slowly")...)
		again := limit("orders", "0.5", "--reason", "slower", "--action", "01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e")
		ctl.must(t, `topic orders is limited to 0.5 per second.*\n`, again...)
		ctl.must(t, `that was done before by this action, .* what stands:\n`+
			`topic orders is limited to 0.5 per second by ada since .*: slower\n`, again...)
		look.must(t, `(?s)TOPIC .*orders +limited to 0.5/s .* limited to 0.5 per second by ada, .*: slower\n`,
			do("topics")...)
		look.must(t, `(?s).*"limit": \{.*"rate": 0.5,.*`, do("topics", "-o", "json")...)
		look.must(t, `(?s).*topic orders is limited to 0.5 per second by ada since .*`, do("status")...)
		ctl.must(t, `topic orders has no limit any more: .*\n`, limit("orders", "none", "--reason", "x")...)
		ctl.must(t, `that was done before by this action, .* what stands:\ntopic orders has no limit\n`, again...)
		targets := column(t, openPool(t, server.URL), "SELECT target FROM "+quote(name)+
			".outbox_actions WHERE verb = 'limit' ORDER BY id")
		if want := []string{"topic orders 200", "topic orders 0.5", "topic orders none"}; !slices.Equal(targets, want) {
			t.Errorf("the log has %q, want %q", targets, want)
		}
	})
}

// TestOutboxctlExplainsFailures: rights and locks, with exit code 1, or 4 where a right is missing.
func TestOutboxctlExplainsFailures(t *testing.T) {
	t.Parallel()
	binary := build(t)
	onEach(t, func(t *testing.T, server pgtest.Server) {
		stranger := pgtest.NewRole(t, server, "stranger")
		name := emptySchema(t, server, "ctl")
		weak := tool{binary, pgtest.As(t, server.URL, stranger)}
		weak.mustFail(t, 1, "have somebody create the schema", "migrate", "up", "--schema", name)
		migrate := tool{binary, server.URL}
		migrate.must(t, `.*`, "migrate", "up", "--target", "2", "--schema", name)
		weak.mustFail(t, 4, "permission denied", "migrate", "status", "--schema", name)
		weak.mustFail(t, 4, "permission denied", "grant", "relay", stranger, "--schema", name)
		tx, err := openPool(t, server.URL).Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(t.Context()) }()
		if _, err := tx.Exec(t.Context(), "LOCK TABLE "+quote(name)+".outbox_dedupe IN ROW EXCLUSIVE MODE"); err != nil {
			t.Fatal(err)
		}
		migrate.mustFail(t, 1, "nothing was changed", "migrate", "down", "--target", "1", "--lock-timeout", "100ms",
			"--schema", name)
	})
}
