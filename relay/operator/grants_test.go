package operator_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/relay/operator"
)

// newRole makes a role with a part, or with none.
func (e *env) newRole(part string) string {
	e.t.Helper()
	role := part + "_of_" + e.schema
	e.exec("CREATE ROLE " + role)
	e.t.Cleanup(func() {
		for _, statement := range []string{"DROP OWNED BY ", "DROP ROLE "} {
			if _, err := e.admin.Exec(context.Background(), statement+role); err != nil {
				e.t.Error(err)
			}
		}
	})
	if slices.Contains(operator.Parts, part) {
		e.exec("SELECT {schema}.outbox_grant($1, $2)", part, role)
	}
	return role
}

// differences are what the grants of the outbox lack or have too much, one line each, and the SQL that ends it.
func (e *env) differences() (found, fixes []string) {
	e.t.Helper()
	roles, err := e.operator.Grants(e.t.Context())
	if err != nil {
		e.t.Fatal(err)
	}
	for _, role := range roles {
		for _, right := range role.Missing {
			found = append(found, role.Name()+" lacks "+right.String())
		}
		for _, right := range role.Surplus {
			found = append(found, role.Name()+" has "+right.String())
		}
		if fix := role.Fix(e.schema); fix != "" {
			fixes = append(fixes, fix)
		}
	}
	return found, fixes
}

// TestGrants: what outbox_grant gives is what its text says, for every part and all of them together.
func TestGrants(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		all := e.newRole("all")
		want := map[string][]string{all: {"operator", "janitor", "producer", "relay", "viewer", "reader"}}
		for _, part := range operator.Parts {
			role := e.newRole(part)
			want[role] = []string{part}
			if part == "operator" {
				want[role] = []string{"viewer", "operator"}
			}
			e.exec("SELECT {schema}.outbox_grant($1, $2)", part, all)
		}
		if found, _ := e.differences(); len(found) > 0 {
			t.Errorf("as granted: %s", strings.Join(found, "\n"))
		}
		roles, err := e.operator.Grants(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for role, parts := range want {
			at := slices.IndexFunc(roles, func(g operator.RoleGrants) bool { return g.Role == role })
			if at < 0 || !slices.Equal(slices.Sorted(slices.Values(roles[at].Parts)), slices.Sorted(slices.Values(parts))) {
				t.Errorf("%s: got %+v, want %q", role, roles, parts)
			}
		}
		if missing, err := e.operator.Lacking(t.Context(), "operator"); err != nil || len(missing) > 0 {
			t.Errorf("an operator lacks %v, %v", missing, err)
		}
		if missing, err := e.operator.Lacking(t.Context(), "relay"); err != nil || len(missing) == 0 {
			t.Errorf("an operator is a relay: %v", err)
		}
	})
}

// TestWrongGrants: every right too many or too few is named, and the printed SQL ends it.
func TestWrongGrants(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		roles := map[string]string{}
		for _, part := range append([]string{"stranger"}, operator.Parts...) {
			roles[part] = e.newRole(part)
		}
		for _, wrong := range []struct{ part, statement, want string }{
			{"viewer", "GRANT SELECT (payload_json) ON {schema}.outbox_events TO", "has SELECT (payload_json) on outbox_events"},
			{"viewer", "GRANT SELECT ON {schema}.outbox_events TO", "has SELECT on outbox_events"},
			{"producer", "REVOKE INSERT (lane) ON {schema}.outbox_events FROM", "lacks INSERT (lane) on outbox_events"},
			{"producer", "REVOKE EXECUTE ON FUNCTION {schema}.outbox_check_event FROM", "lacks EXECUTE on outbox_check_event"},
			{"operator", "GRANT UPDATE (state) ON {schema}.outbox_events TO", "has UPDATE (state) on outbox_events"},
			{"operator", "REVOKE EXECUTE ON FUNCTION {schema}.outbox_act FROM", "lacks EXECUTE on outbox_act"},
			{"janitor", "GRANT TRUNCATE, TRIGGER ON {schema}.outbox_held TO", "has TRUNCATE on outbox_held"},
			{"relay", "REVOKE SELECT ON SEQUENCE {schema}.outbox_events_seq_seq FROM", "lacks SELECT on outbox_events_seq_seq"},
			{"relay", "REVOKE SELECT ON {schema}.outbox_pauses FROM", "lacks SELECT on outbox_pauses"},
			{"janitor", "REVOKE USAGE ON SCHEMA {schema} FROM", "lacks USAGE on the schema"},
			{"stranger", "GRANT EXECUTE ON FUNCTION {schema}.outbox_uuid7 TO", "has EXECUTE on outbox_uuid7"},
			{"stranger", "GRANT CREATE ON SCHEMA {schema} TO", "has CREATE on the schema"},
		} {
			role := roles[wrong.part]
			e.exec(wrong.statement + " " + role)
			found, fixes := e.differences()
			if !slices.Contains(found, role+" "+wrong.want) || len(found) > 2 {
				t.Errorf("%s: found %q", wrong.statement, found)
			}
			for _, fix := range fixes {
				for statement := range strings.SplitSeq(fix, "; ") {
					e.exec(statement)
				}
			}
			if left, _ := e.differences(); len(left) > 0 {
				t.Errorf("%s: after %q: %q", wrong.statement, fixes, left)
			}
		}
		e.exec("GRANT SELECT ON {schema}.outbox_meta TO PUBLIC")
		found, fixes := e.differences()
		if fmt.Sprint(found) != "[PUBLIC has SELECT on outbox_meta]" || len(fixes) != 1 {
			t.Errorf("found %q, %q", found, fixes)
		}
	})
}
