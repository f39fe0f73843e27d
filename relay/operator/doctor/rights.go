package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/posthaste-dev/posthaste/relay/operator"
)

type right = operator.Right

// some names the first rights of many.
func some(rights []right) string {
	const most = 3
	var words []string
	for _, right := range rights[:min(most, len(rights))] {
		words = append(words, right.String())
	}
	text := strings.Join(words, ", ")
	if more := len(rights) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// rolesOf are the roles that have a part.
func (x *examination) rolesOf(parts ...string) (names []string) {
	for _, role := range x.roles {
		if slices.ContainsFunc(role.Parts, func(p string) bool { return slices.Contains(parts, p) }) {
			names = append(names, role.Role)
		}
	}
	return names
}

// checkRowSecurity: relays and janitors must see every event. Owners and superusers do, unless the table forces it.
func (x *examination) checkRowSecurity(ctx context.Context) error {
	var table, role string
	roles := x.rolesOf("relay", "janitor")
	return x.rows(ctx, "row_security", []any{x.namespace(), roles}, []any{&table, &role}, func() {
		x.sqlf("rows_hidden", fmt.Sprintf("CREATE POLICY %s ON %s FOR ALL TO %s USING (true)", ident("outbox_sees_all_"+role),
			x.name(table), ident(role)), "row security of %s hides rows from %s", table, role)
	})
}
