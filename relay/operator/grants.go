package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Everybody is how a list of grants names PUBLIC.
const Everybody = ""

// RoleGrants are the rights of one database role on the outbox, beside those that its parts should have.
type RoleGrants struct {
	// Role is the database role, [Everybody] for PUBLIC.
	Role string `json:"role"`
	// Parts are what it is to the outbox: it has most of the rights by which each of these is told.
	Parts []string `json:"parts"`
	// Missing are the rights of its parts that it does not have, Surplus those that none of them has.
	Missing []Right `json:"missing,omitempty"`
	Surplus []Right `json:"surplus,omitempty"`
}

// Name is the role as people call it.
func (g RoleGrants) Name() string {
	if g.Role == Everybody {
		return "PUBLIC"
	}
	return g.Role
}

// marks are the rights by which a part is told: what only this part has.
var marks = map[string][]Right{
	"producer": {
		{"EXECUTE", kindFunction, "outbox_emit", ""},
		{"EXECUTE", kindFunction, "outbox_emit_deduped", ""},
		{"INSERT", kindTable, "outbox_events", "id"},
	},
	"relay": {
		{"UPDATE", kindTable, "outbox_events", "state"},
		{"INSERT", kindTable, "outbox_beats", ""},
		{"EXECUTE", kindFunction, "outbox_end_expired", ""},
		{"INSERT", kindTable, "outbox_relays", "id"},
	},
	"janitor": {
		{"DELETE", kindTable, "outbox_events", ""},
		{"DELETE", kindTable, "outbox_dlq", ""},
		{"UPDATE", kindTable, "outbox_retention", ""},
	},
	"viewer": {
		{"SELECT", kindTable, "outbox_status", ""},
		{"SELECT", kindTable, "outbox_dlq", "error_reason"},
		{"SELECT", kindTable, "outbox_events", "tenant_id"},
		{"SELECT", kindTable, "outbox_retention", ""},
	},
	"operator": {
		{"EXECUTE", kindFunction, "outbox_act", ""},
		{"EXECUTE", kindFunction, "outbox_pause", ""},
		{"EXECUTE", kindFunction, "outbox_resume", ""},
	},
	"reader": {{"EXECUTE", kindFunction, "outbox_look", ""}},
}

// partsBy tells the parts of a role that has some rights: each of which it has more than half of the marks.
func partsBy(has func(Right) bool) (parts []string) {
	for _, part := range Parts {
		count := 0
		for _, mark := range marks[part] {
			if has(mark) {
				count++
			}
		}
		if 2*count > len(marks[part]) {
			parts = append(parts, part)
		}
	}
	return parts
}

// publicRights are what everybody may have.
var publicRights = []Right{
	{"EXECUTE", kindFunction, "outbox_lane", ""}, {"USAGE", kindSchema, "", ""},
}

// Grants lists the roles that were granted something on the outbox, with what their parts lack and what they have
// beyond them. Owners have everything and are not listed, nor is who has rights only as a member of a role that is.
// Every role may ask.
func (o *Operator) Grants(ctx context.Context) (roles []RoleGrants, err error) {
	err = o.look(ctx, "grants", func(tx *looking) error {
		granted := map[string][]Right{}
		var role string
		var right Right
		err := o.rows(ctx, tx, "grants", []any{pgx.Identifier{o.schema}.Sanitize()},
			[]any{&role, &right.Privilege, &right.Kind, &right.Object, &right.Column}, func() {
				if right.Kind == kindSchema {
					right.Object = ""
				}
				granted[role] = append(granted[role], right)
			})
		if err != nil {
			return err
		}
		names := make([]string, 0, len(granted))
		for name := range granted {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			one, err := o.compare(ctx, tx, name, granted[name])
			if err != nil {
				return err
			}
			if len(one.Parts) > 0 || len(one.Surplus) > 0 {
				roles = append(roles, one)
			}
		}
		return nil
	})
	return roles, err
}

// compare finds what a role has too much and too little.
func (o *Operator) compare(ctx context.Context, tx pgx.Tx, role string, granted []Right) (RoleGrants, error) {
	found := RoleGrants{Role: role}
	expected := map[Right]bool{}
	if role == Everybody {
		for _, right := range publicRights {
			expected[right] = true
		}
	} else {
		has := func(right Right) bool {
			whole := right
			whole.Column = ""
			return slices.Contains(granted, right) || slices.Contains(granted, whole)
		}
		found.Parts = partsBy(has)
		var wanted []Right
		for _, part := range found.Parts {
			rights, err := RightsOf(part)
			if err != nil {
				return found, err
			}
			for _, right := range rights {
				if !expected[right] {
					expected[right] = true
					wanted = append(wanted, right)
				}
			}
		}
		var err error
		if found.Missing, err = o.lacking(ctx, tx, role, wanted); err != nil {
			return found, err
		}
	}
	for _, right := range granted {
		// To enter the schema is harmless, and other things may be in it.
		if !expected[right] && right != (Right{Privilege: "USAGE", Kind: kindSchema}) {
			found.Surplus = append(found.Surplus, right)
		}
	}
	return found, nil
}

// lacking are the rights that a role does not have in any way.
func (o *Operator) lacking(ctx context.Context, tx pgx.Tx, role string, wanted []Right) (missing []Right, err error) {
	var roles, privileges, kinds, objects, columns []string
	for _, right := range wanted {
		roles, privileges = append(roles, role), append(privileges, right.Privilege)
		kinds, objects, columns = append(kinds, right.Kind), append(objects, right.Object), append(columns, right.Column)
	}
	var place int
	var has bool
	err = o.rows(ctx, tx, "rights", []any{
		pgx.Identifier{o.schema}.Sanitize(), roles, privileges, kinds, objects, columns,
	}, []any{&place, &has}, func() {
		if !has {
			missing = append(missing, wanted[place-1])
		}
	})
	return missing, err
}

// Lacking are the rights of a part that the role which is connected does not have, be it by itself or by another role
// whose member it is.
func (o *Operator) Lacking(ctx context.Context, part string) (missing []Right, err error) {
	wanted, err := RightsOf(part)
	if err != nil {
		return nil, err
	}
	err = o.look(ctx, "grants", func(tx *looking) error {
		var role string
		if err := tx.QueryRow(ctx, "SELECT current_user::text").Scan(&role); err != nil {
			return err //nolint:wrapcheck // look says what it was
		}
		missing, err = o.lacking(ctx, tx, role, wanted)
		return err
	})
	return missing, err
}

// Fix is SQL, for the owner of the tables, after which the role has what its parts need and no more. Empty: it does.
func (g RoleGrants) Fix(schemaName string) string {
	var statements []string
	role := "PUBLIC"
	if g.Role != Everybody {
		role = pgx.Identifier{g.Role}.Sanitize()
	}
	type what struct{ privilege, on string }
	columns := map[what][]string{}
	var order []what
	whole := false
	for _, right := range g.Surplus {
		key := what{right.Privilege, right.on(schemaName)}
		if _, seen := columns[key]; !seen {
			order = append(order, key)
		}
		if right.Column != "" {
			columns[key] = append(columns[key], pgx.Identifier{right.Column}.Sanitize())
		} else {
			// A right on the whole table takes the ones on its columns along when it goes.
			columns[key] = columns[key][:0:0]
			whole = whole || right.Kind == kindTable
		}
	}
	for _, key := range order {
		list := ""
		if len(columns[key]) > 0 {
			list = " (" + strings.Join(columns[key], ", ") + ")"
		}
		statements = append(statements, fmt.Sprintf("REVOKE %s%s ON %s FROM %s", key.privilege, list, key.on, role))
	}
	if len(g.Missing) > 0 || whole {
		for _, part := range g.Parts {
			statements = append(statements, fmt.Sprintf("SELECT %s.outbox_grant('%s', '%s')",
				pgx.Identifier{schemaName}.Sanitize(), part, strings.ReplaceAll(g.Role, "'", "''")))
		}
	}
	return strings.Join(statements, "; ")
}
