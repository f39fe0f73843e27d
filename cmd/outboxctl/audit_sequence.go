package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/relay/operator/audit"
)

// newAuditSequence accounts for the numbers of events.
func newAuditSequence(root *rootCommand) *cobra.Command {
	var strict bool
	var limit int
	cmd := root.show(&cobra.Command{
		Use:   "sequence",
		Short: "Account for every number that events were given",
		Long: `Account for every number that the sequence of events gave out: an event has it, retention has deleted its event
and written that down, or nobody has it. The latter are gaps. A transaction that is rolled back leaves one, and so does
one that is still open, and an event that somebody deleted by hand: the table alone cannot tell. Where the message of
a deleted event is still at the broker, 'outboxctl audit' can.

Gaps between numbers that retention has deleted are counted and not listed: which these were is not known any more.

It looks at every number once, by the index, and says meanwhile how far it is. The viewer role is enough. Gaps are
ordinary, so it exits with 0; with --strict, for producers that never roll back, with 5 if there is one. It also exits
with 5 if the sequence is behind numbers that are in use, as where a table was copied without it.`,
		Example: `  outboxctl audit sequence
  outboxctl audit sequence --strict -o json`,
		Args: cobra.NoArgs,
	}, func(ctx context.Context, p *present.Printer) error {
		if limit < 0 {
			return usageError{"--limit must not be below 0"}
		}
		conn, err := root.connect(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
		findings := newFindings(root, p, limit)
		numbers, err := audit.Sequence(ctx, conn, audit.Config{
			Schema: root.schema, Found: findings.add, Progress: root.auditProgress,
		})
		if err != nil {
			return root.looked(err)
		}
		if err := findings.end(numbers, func() []string { return numberLines(p, numbers) }); err != nil {
			return err
		}
		return numbersVerdict(numbers, strict)
	})
	cmd.Flags().BoolVar(&strict, "strict", false, "a gap is a finding: for producers that never roll back")
	cmd.Flags().IntVar(&limit, "limit", 100, "how many gaps to print; all are counted")
	return cmd
}

// numbersVerdict is the exit code. What retention deletes meanwhile may be counted twice, and then hide what nobody
// has: a gap is one all the same.
func numbersVerdict(n audit.Numbers, strict bool) error {
	switch {
	case n.Behind > 0:
		return problem{
			code: "sequence_behind", exit: exitFound,
			err: fmt.Errorf("the sequence stands at %d, and numbers up to %d are in use", n.Drawn,
				n.Drawn+n.Behind),
			hint: "docs/operate/operations.md says what to do: The sequence is behind",
		}
	case strict && (n.Unused > 0 || n.Gaps > 0):
		return problem{
			code: "audit_found", exit: exitFound,
			err: fmt.Errorf("%d numbers were drawn that no event has and retention did not delete, and there are %s",
				n.Unused, plural(int(n.Gaps), "gap", "gaps")),
			hint: "docs/operate/operations.md says what to do about it",
		}
	default:
		return nil
	}
}

func numberLines(p *present.Printer, n audit.Numbers) []string {
	lines := []string{
		fmt.Sprintf("%s numbers were drawn: %d are there, %d pruned, %d nobody has", p.Paint(present.Bold,
			fmt.Sprint(n.Drawn)), n.Present, n.Pruned, n.Unused),
	}
	if n.Behind > 0 {
		lines = append(lines, p.Paint(present.Bad, fmt.Sprintf("the sequence is behind: numbers up to %d are in use",
			n.Drawn+n.Behind)))
	}
	if n.Unused > 0 {
		text := "those were rolled back, or their events were deleted"
		if n.Open > 0 {
			text = fmt.Sprintf("those were rolled back, or are of the %s, or their events were deleted",
				plural(int(n.Open), "transaction that is open", "transactions that are open"))
		}
		lines = append(lines, fmt.Sprintf("%s; %d of them are in %s, %d between numbers that were pruned", text,
			n.Unused-n.Within, plural(int(n.Gaps), "gap", "gaps"), n.Within))
	}
	if n.Meanwhile > 0 {
		lines = append(lines, fmt.Sprintf("≈ retention deleted %d meanwhile, which may be counted twice", n.Meanwhile))
	}
	return lines
}
