package main

import (
	"net/url"
	"strings"
	"testing"
)

// TestThePostgreSQLOfThisMachine is found as psql finds it, where no database is given.
func TestThePostgreSQLOfThisMachine(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		address, err := url.Parse(e.url)
		if err != nil {
			t.Fatal(err)
		}
		environment := map[string]string{
			"PGHOST": address.Hostname(), "PGPORT": address.Port(), "PGUSER": address.User.Username(),
			"PGDATABASE": strings.TrimPrefix(address.Path, "/"),
		}
		code, stdout, stderr := call(t, environment, "emit", "order_created", "--aggregate", "order/1", "--schema", e.schema)
		if code != exitDone || !strings.Contains(stdout, "created") {
			t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
		}
		delete(environment, "PGDATABASE")
		environment["PGUSER"] = "nobody_of_this_name"
		if code, _, stderr := call(t, environment, "emit", "a", "--aggregate", "order/1"); code != exitNotLetIn ||
			!strings.Contains(stderr, "no password is given: set POSTHASTE_DATABASE_PASSWORD") {
			t.Errorf("exit code %d\n%s", code, stderr)
		}
	})
}

func TestNoPostgreSQLOnThisMachine(t *testing.T) {
	t.Parallel()
	emit := []string{"emit", "a", "--aggregate", "order/1"}
	code, _, stderr := call(t, map[string]string{"PGPORT": "1"}, emit...)
	for _, want := range []string{
		"no PostgreSQL answers on this machine", "/var/run/postgresql, port 1: ", "/tmp, port 1: ",
		"127.0.0.1, port 1: ", "docker run", "export DATABASE_URL=postgres://",
	} {
		if code != exitFailed || !strings.Contains(stderr, want) {
			t.Errorf("exit code %d, want %q\n%s", code, want, stderr)
		}
	}
	code, _, stderr = call(t, map[string]string{"PGHOST": "255.255.255.255"}, emit...)
	if code != exitUsage || !strings.Contains(stderr, "255.255.255.255 is not on this machine: add sslmode=verify-full") {
		t.Errorf("another machine: exit code %d\n%s", code, stderr)
	}
}
