package pgtest

import (
	"context"
	"errors"
	"net/url"
	"testing"
)

// NewRole makes a role that can log in and nothing else, and takes it away when the test ends.
func NewRole(t testing.TB, server Server, prefix string) string {
	t.Helper()
	role, std := NewName(prefix), OpenSQL(t, "pgx", server.URL)
	if _, err := std.ExecContext(t.Context(), "CREATE ROLE "+role+" LOGIN"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, statement := range []string{"DROP OWNED BY " + role, "DROP ROLE " + role} {
			if _, err := std.ExecContext(context.Background(), statement); err != nil {
				t.Errorf("%s: %v", statement, err)
			}
		}
	})
	return role
}

// As is an address for another role; the servers of the tests trust everyone on loopback.
func As(t testing.TB, address, role string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	parsed.User = url.User(role)
	return parsed.String()
}

// SQLState is the SQLSTATE of an error, of whichever driver; "" for none, "?" for another kind of error.
func SQLState(err error) string {
	if err == nil {
		return ""
	}
	var state interface{ SQLState() string }
	if errors.As(err, &state) {
		return state.SQLState()
	}
	return "?"
}
