package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// mostData is how much is read of data: an event has at most 1 MiB.
const mostData = 1<<20 + 1

func newDeadEdit(root *rootCommand) *cobra.Command {
	who := &decisionFlags{root: root}
	var id outbox.ID
	var data string
	var again bool
	cmd := &cobra.Command{
		Use:   "edit EVENT_ID --data FILE",
		Short: "Make a new event of an old one, with other data",
		Long: `Make a new event of an old one, with other data: those of a file, or of standard input for -. The old one is
never changed. It can be dead, published or discarded; a dead one is discarded with it, and what waits behind it goes.
The new one comes at the tail, with an id of its own and the header reissue_of. An event that was issued again or edited
before has a new one already: --again makes another one.

Who did it and why is written to outbox_actions in the same transaction. It needs the operator role.`,
		Example: "  outboxctl dead edit 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e --data fixed.json " +
			`--reason "the amount had no currency"`,
		Args: func(_ *cobra.Command, args []string) error { return oneEvent(&id)(args) },
	}
	cmd.Flags().StringVar(&data, "data", "", "the file with the data, a JSON object; - for standard input")
	cmd.Flags().BoolVar(&again, "again", false, againHelp)
	who.add(cmd)
	cmd.RunE = run(func(ctx context.Context, out io.Writer) error {
		action, err := who.decision()
		if err != nil {
			return err
		}
		content, err := readData(data, cmd.InOrStdin())
		if err != nil {
			return err
		}
		return root.operate(ctx, func(op *operator.Operator) error {
			edit := op.Edit
			if again {
				edit = op.EditAgain
			}
			result, made, err := edit(ctx, action, id, content)
			if err != nil {
				return ofAction(err, action.ID)
			}
			results, as := []operator.Result{result}, reissuedAs([]outbox.ID{id}, []outbox.ID{made})
			return hintedAgain(outcomes{verbEdit, action, results, as}.report(ctx, out, op), results, as)
		})
	})
	return cmd
}

// readData reads a file, or standard input.
func readData(name string, stdin io.Reader) ([]byte, error) {
	in := stdin
	switch name {
	case "":
		return nil, usageError{"--data is missing: a file with the new data, or - for standard input"}
	case "-":
	default:
		file, err := os.Open(name)
		if err != nil {
			return nil, usageError{"--data: " + err.Error()}
		}
		defer file.Close()
		in = file
	}
	content, err := io.ReadAll(io.LimitReader(in, mostData))
	if err != nil {
		return nil, fmt.Errorf("--data: %w", err)
	}
	if len(content) == mostData {
		return nil, usageError{"--data: an event has at most 1 MiB"}
	}
	return content, checkObject(content, "--data")
}
