package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/posthaste-dev/posthaste/relay/operator"
)

// settings of roles that break something.
var badSettings = []struct{ name, value, code string }{
	{"synchronous_commit", "off", "commit_not_durable"},
	{"session_replication_role", "replica", "triggers_off"},
	{"default_transaction_read_only", "on", "read_only_role"},
	{"enable_indexscan", "off", "planner_off"},
}

// checkSettings looks at what promises rest on.
func (x *examination) checkSettings(ctx context.Context) error {
	var name string
	err := x.rows(ctx, "server", nil, []any{&name}, func() {
		code := "not_durable"
		if name == "autovacuum" || name == "track_counts" {
			code = "autovacuum_off"
		}
		x.sqlf(code, "ALTER SYSTEM SET "+name+" = on; SELECT pg_reload_conf()", "the server runs with %s = off", name)
	})
	if err != nil {
		return err
	}
	var role, database, value string
	var inDatabase bool
	roles := append(x.rolesOf(operator.Parts...), x.role)
	return x.rows(ctx, "role_settings", []any{roles}, []any{&role, &inDatabase, &database, &name, &value}, func() {
		at := slices.IndexFunc(badSettings, func(b struct{ name, value, code string }) bool {
			return b.name == name && (b.value == value || b.value == "off" && isOff(value) || b.value == "on" && isOn(value))
		})
		if at < 0 {
			return
		}
		bad := badSettings[at]
		who, statement := "the role "+role, "ALTER ROLE "+ident(role)
		switch {
		case role == "":
			who, statement = "the database "+database, "ALTER DATABASE "+ident(database)
		case inDatabase:
			statement += " IN DATABASE " + ident(database)
		}
		fix := fmt.Sprintf("%s RESET %s", statement, name)
		if bad.code == "read_only_role" { // it may be so for whoever repairs it
			fix = "SET default_transaction_read_only = off; " + fix
		}
		x.sqlf(bad.code, fix, "%s has %s = %s", who, name, value)
	})
}

func isOff(value string) bool {
	return slices.Contains([]string{"off", "false", "no", "0"}, strings.ToLower(value))
}

func isOn(value string) bool {
	return slices.Contains([]string{"on", "true", "yes", "1"}, strings.ToLower(value))
}
