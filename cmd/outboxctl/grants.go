package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// matrixRow is what the parts may do with one object.
type matrixRow struct {
	Object    string `json:"object"`
	Kind      string `json:"kind"`
	Privilege string `json:"privilege"`
	// Parts has the columns for each part that may: none of them means all.
	Parts map[string][]string `json:"parts"`
}

// roleReport is one role as --check finds it.
type roleReport struct {
	operator.RoleGrants

	Fix string `json:"fix,omitempty"`
}

// newGrants shows who may do what.
func newGrants(root *rootCommand) *cobra.Command {
	var check bool
	cmd := root.show(&cobra.Command{
		Use:   "grants",
		Short: "Show what each part may do on which object, or check what the roles of the database may",
		Long: `Show what each part may do on which object, as 'outboxctl grant' gives it. A number is of how many columns;
-o json names them.

With --check, compare it with the database: every role that was granted something there, the parts that it has, which
of their rights it lacks, and which it has beyond them, with the SQL that ends it, for the owner of the tables. The exit
code is 1 if something differs. Owners have everything and are not listed. Every role may ask.`,
		Example: "  outboxctl grants\n  outboxctl grants --check --schema billing",
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, p *present.Printer) error {
		if !check {
			return showMatrix(p)
		}
		return root.look(ctx, func(op *operator.Operator) error { return checkGrants(ctx, p, op, root.schema) })
	})
	cmd.Flags().BoolVar(&check, "check", false, "compare with what the roles of the database have")
	return cmd
}

func showMatrix(p *present.Printer) error {
	rows, err := matrix()
	if err != nil {
		return err
	}
	columns := []present.Column[matrixRow]{
		{Name: "OBJECT", Of: func(r matrixRow) string { return r.Object }},
		{Name: "MAY", Of: func(r matrixRow) string { return r.Privilege }},
	}
	for _, part := range operator.Parts {
		columns = append(columns, present.Column[matrixRow]{Name: strings.ToUpper(part), Of: func(r matrixRow) string {
			names, may := r.Parts[part]
			switch {
			case !may:
				return "-"
			case len(names) == 0:
				return "yes"
			}
			return fmt.Sprintf("%d columns", len(names))
		}})
	}
	return present.List(p, rows, "", columns...)
}

// matrix has a row for every object and right that some part has.
func matrix() (rows []matrixRow, err error) {
	for _, part := range operator.Parts {
		rights, err := operator.RightsOf(part)
		if err != nil {
			return nil, err
		}
		for _, right := range rights {
			if right.Object == "" {
				right.Object = "the schema"
			}
			at := slices.IndexFunc(rows, func(r matrixRow) bool {
				return r.Object == right.Object && r.Privilege == right.Privilege
			})
			if at < 0 {
				at = len(rows)
				rows = append(rows, matrixRow{
					Object: right.Object, Kind: right.Kind, Privilege: right.Privilege, Parts: map[string][]string{},
				})
			}
			columns := rows[at].Parts[part]
			if columns == nil {
				columns = []string{}
			}
			if right.Column != "" {
				columns = append(columns, right.Column)
			}
			rows[at].Parts[part] = columns
		}
	}
	slices.SortStableFunc(rows, func(a, b matrixRow) int {
		return strings.Compare(a.Kind+" "+a.Object, b.Kind+" "+b.Object)
	})
	return rows, nil
}

// checkGrants compares, and fails where something differs.
func checkGrants(ctx context.Context, p *present.Printer, op *operator.Operator, schema string) error {
	roles, err := op.Grants(ctx)
	if err != nil {
		return err
	}
	reports := []roleReport{}
	differs := 0
	for _, role := range roles {
		report := roleReport{role, role.Fix(schema)}
		if report.Parts == nil {
			report.Parts = []string{}
		}
		reports = append(reports, report)
		if len(role.Missing)+len(role.Surplus) > 0 {
			differs++
		}
	}
	err = present.List(p, reports, "no role was granted anything: only the owner of the tables may use them",
		present.Column[roleReport]{Name: "ROLE", Of: func(r roleReport) string { return r.Name() }},
		present.Column[roleReport]{Name: "PARTS", Of: func(r roleReport) string { return strings.Join(r.Parts, " ") }},
		present.Column[roleReport]{
			Name: "LACKS", Optional: true,
			Of: func(r roleReport) string { return inWords(r.Missing) },
		},
		present.Column[roleReport]{
			Name: "BEYOND", Optional: true,
			Of: func(r roleReport) string { return inWords(r.Surplus) },
		})
	if err != nil || differs == 0 {
		return err
	}
	for _, report := range reports {
		if report.Fix == "" {
			continue
		}
		if err := p.Line("fix: ", p.Paint(present.Bold, report.Fix+";")); err != nil {
			return err
		}
	}
	return problem{
		code: "grants_differ", exit: exitFailed, hint: "run the SQL of each fix as the owner of the tables",
		err: errors.New(plural(differs, "role differs", "roles differ") + " from what the parts say"),
	}
}

func inWords(rights []operator.Right) string {
	var words []string
	for _, right := range rights {
		words = append(words, right.String())
	}
	return strings.Join(words, ", ")
}
