package doctor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/posthaste-dev/posthaste/relay/internal/sqlstate"
)

// checkVersion compares the tables with what this program knows.
func (x *examination) checkVersion(ctx context.Context) error {
	want, err := readExpected()
	if err != nil {
		return err
	}
	var version int64
	err = x.row(ctx, "SELECT schema_version, installed_at FROM "+x.name("outbox_meta"), nil,
		[]any{&version, &x.installed})
	switch sqlstate.Of(err) {
	case sqlstate.UndefinedTable, sqlstate.InvalidSchemaName:
		x.commandf("no_outbox", x.outboxctl("migrate", "up"), "there is no outbox in schema %s", x.Schema)
		return nil
	case sqlstate.InsufficientPrivilege:
		x.sqlf("schema_unreadable", fmt.Sprintf("SELECT %s(%s, %s)", x.name("outbox_grant"), literal("viewer"),
			literal(x.role)),
			"the role %s may not read outbox_meta in schema %s", x.role, x.Schema)
		return nil
	}
	switch {
	case err != nil:
		return err
	case version < want.newest:
		x.commandf("schema_old", x.outboxctl("migrate", "up"), "the tables are at version %d, this outboxctl knows %d",
			version,
			want.newest)
	case version > want.newest:
		x.advisef("schema_new", "use the outboxctl of the version that migrated",
			"the tables are at version %d, this outboxctl "+
				"knows %d", version, want.newest)
	}
	return nil
}

// checkVersionTable finds migrations that are in the tables and not in the table of versions. Who migrates with other
// tools has none, which is well.
func (x *examination) checkVersionTable(ctx context.Context) error {
	table := x.name("outbox_schema_version")
	var there, readable bool
	err := x.row(ctx, `SELECT pg_catalog.to_regclass($1::text) IS NOT NULL, coalesce(
		pg_catalog.has_table_privilege(pg_catalog.to_regclass($1::text), 'SELECT'), false)`, []any{table},
		[]any{&there, &readable})
	if err != nil || !there {
		return err
	}
	if !readable {
		return nil // it is the owner's alone
	}
	want, err := readExpected()
	if err != nil {
		return err
	}
	var applied []int64
	if err := x.row(ctx, "SELECT coalesce(array_agg(version_id), '{}') FROM "+table+" WHERE is_applied", nil,
		[]any{&applied}); err != nil {
		return err
	}
	var missing, values []string
	for version := int64(1); version <= want.newest; version++ {
		if !slices.Contains(applied, version) {
			missing = append(missing, strconv.FormatInt(version, 10))
			values = append(values, fmt.Sprintf("(%d, true)", version))
		}
	}
	if len(missing) > 0 {
		x.sqlf("migration_unrecorded", fmt.Sprintf("INSERT INTO %s (version_id, is_applied) VALUES %s", table,
			strings.Join(values, ", ")), "outbox_schema_version does not have version %s, and the tables do",
			strings.Join(missing, ", "))
	}
	return nil
}

// checkObjects finds what somebody has dropped or switched off, and what is open to others.
func (x *examination) checkObjects(ctx context.Context) error {
	want, err := readExpected()
	if err != nil {
		return err
	}
	there := map[string]bool{}
	var kind, name, detail string
	var bad bool
	var unpinned []string
	disabled := map[string]string{}
	err = x.rows(ctx, "objects", []any{x.namespace()}, []any{&kind, &name, &detail, &bad}, func() {
		there[kind+" "+name] = true
		switch {
		case bad && kind == "function":
			unpinned = append(unpinned, name)
		case bad && kind == "trigger" && slices.ContainsFunc(want.triggers, func(m made) bool { return m.name == name }):
			disabled[name] = detail
		}
	})
	if err != nil {
		return err
	}
	for kind, names := range map[string][]string{"table": want.tables, "view": want.views, "function": want.functions} {
		for _, name := range names {
			if !there[kind+" "+name] {
				x.advisef("object_missing", "restore it from a backup, or from 'outboxctl migrate sql'", "the %s %s is missing",
					kind, name)
			}
		}
	}
	for _, trigger := range want.triggers {
		if !there["trigger "+trigger.name] && there["table "+trigger.table] {
			x.sqlf("trigger_missing", trigger.qualified(x.name), "the trigger %s of %s is missing", trigger.name, trigger.table)
		}
	}
	for name, table := range disabled {
		x.sqlf("trigger_disabled", fmt.Sprintf("ALTER TABLE %s ENABLE TRIGGER %s", x.name(table), ident(name)),
			"the trigger %s of %s is switched off", name, table)
	}
	if len(unpinned) > 0 {
		slices.Sort(unpinned)
		x.sqlf("function_unpinned", "SELECT "+x.name("outbox_seal")+"()", "%s: the search_path is not pinned",
			strings.Join(slices.Compact(unpinned), ", "))
	}
	return x.checkOpen(ctx)
}

// checkOpen: nobody else makes something beside our tables.
func (x *examination) checkOpen(ctx context.Context) error {
	var open bool
	err := x.row(ctx, "SELECT pg_catalog.has_schema_privilege('public', $1::text::regnamespace, 'CREATE')",
		[]any{x.namespace()}, []any{&open})
	if err == nil && open {
		x.sqlf("schema_open", "REVOKE CREATE ON SCHEMA "+ident(x.Schema)+" FROM PUBLIC",
			"everybody may create objects in schema %s", x.Schema)
	}
	return err
}

// checkGrants compares what roles may with what their parts say.
func (x *examination) checkGrants(ctx context.Context) (err error) {
	if x.Part != "" {
		missing, err := x.op.Lacking(ctx, x.Part)
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			x.sqlf("part_incomplete", fmt.Sprintf("SELECT %s(%s, %s)", x.name("outbox_grant"), literal(x.Part), literal(x.role)),
				"the role %s is no %s: it lacks %s", x.role, x.Part, some(missing))
		}
	}
	if x.roles, err = x.op.Grants(ctx); err != nil {
		return err
	}
	for _, role := range x.roles {
		// That everybody may create something is told by itself.
		role.Surplus = slices.DeleteFunc(slices.Clone(role.Surplus), func(r right) bool {
			return role.Name() == "PUBLIC" && r.Kind == "schema" && r.Privilege == "CREATE"
		})
		fix := role.Fix(x.Schema)
		if fix == "" || x.Part != "" && role.Role == x.role && x.found("part_incomplete") {
			continue
		}
		var words []string
		if len(role.Missing) > 0 {
			words = append(words, "lacks "+some(role.Missing))
		}
		if len(role.Surplus) > 0 {
			words = append(words, "has beyond its parts "+some(role.Surplus))
		}
		x.sqlf("grants_differ", fix, "the role %s (%s) %s", role.Name(), strings.Join(role.Parts, ", "),
			strings.Join(words, ", and "))
	}
	return nil
}
