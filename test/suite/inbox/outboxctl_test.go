package inbox_test

import (
	"os/exec"
	"regexp"
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/process"
)

// TestOutboxctl installs an inbox with the real binary, grants a consumer its part, and goes back.
func TestOutboxctl(t *testing.T) {
	t.Parallel()
	binary, err := process.Built(t.Context(), "cmd/outboxctl")
	if err != nil {
		t.Fatal(err)
	}
	for _, server := range pgtest.Servers() {
		t.Run(server.Name, func(t *testing.T) {
			t.Parallel()
			db := emptySchema(t, server, "Ctl 1")
			for _, step := range []struct {
				args []string
				want string
			}{
				{[]string{"migrate", "status"}, `the inbox in schema Ctl 1\w+ is at version 0 of 4\n(  missing  0000\d_\w+\n){4}`},
				{
					[]string{"migrate", "up"},
					`(applied 0000\d_\w+ in \S+\n){4}the inbox in schema Ctl 1\w+ is at version 4: 4 migrations in \S+\n`,
				},
				{[]string{"migrate", "down", "--target", "1"}, `(took back \S+ in \S+\n){3}the inbox in schema .*\n`},
				{[]string{"migrate", "up"}, `(applied 0000\d_\w+ in \S+\n){3}the inbox in schema .*\n`},
			} {
				run(t, db, binary, step.want, step.args...)
			}
			role := newRole(t, db, "")
			run(t, db, binary, `role `+role+` is now consumer in the inbox in schema Ctl 1\w+\n`, "grant", "consumer", role)
			if _, err := db.Open(t, pgtest.As(t, db.URL, role)).Exec(t.Context(),
				db.SQL("SELECT {schema}.inbox_first('mailer', gen_random_uuid())")); err != nil {
				t.Errorf("the consumer cannot mark: %v", err)
			}
			run(t, db, binary, `role `+role+` is now consumer in the inbox in schema Ctl 1\w+\n`, "grant", "consumer", role,
				"--consumers", "biller,biller.retries")
			for name, want := range map[string]string{"mailer": "42501", "biller": "", "biller.retries": ""} {
				if _, err := db.Open(t, pgtest.As(t, db.URL, role)).Exec(t.Context(),
					db.SQL("SELECT {schema}.inbox_first($1, gen_random_uuid())"), name); pgtest.SQLState(err) != want {
					t.Errorf("bound to others, as %s: %v", name, err)
				}
			}
			run(t, db, binary, `(took back \S+ in \S+\n){4}the inbox in schema .*\n`, "migrate", "down", "--target", "0",
				"--yes-delete-everything")
			command := exec.CommandContext(t.Context(), binary, "grant", "--inbox", "consumer", role, "--schema", db.Schema)
			command.Env = []string{"DATABASE_URL=" + db.URL}
			if said, err := command.CombinedOutput(); err == nil ||
				!regexp.MustCompile(`there is no inbox in schema .* run 'outboxctl migrate up --inbox --schema `).Match(said) {
				t.Errorf("without an inbox: %v\n%s", err, said)
			}
		})
	}
}

// run calls outboxctl about the inbox of the test's schema and wants it to say this.
func run(t testing.TB, db *pgtest.DB, binary, want string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), binary, append(args, "--inbox", "--schema", db.Schema)...)
	command.Env = []string{"DATABASE_URL=" + db.URL}
	said, err := command.CombinedOutput()
	if err != nil || !regexp.MustCompile(`\A`+want+`\z`).Match(said) {
		t.Fatalf("%q: %v, want %s\n%s", args, err, want, said)
	}
}
