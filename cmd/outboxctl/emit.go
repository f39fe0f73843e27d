package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/dev"
	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// emitCommand writes one event.
type emitCommand struct {
	root                                 *rootCommand
	in                                   func() io.Reader
	eventType                            string
	aggregate, data, tenant, key, module string
	headers                              []string
	many                                 backfillFlags
}

// emitReport is what became of the event.
type emitReport struct {
	ID      outbox.ID `json:"id"`
	Type    string    `json:"type"`
	Created bool      `json:"created"`
	// KnownToRelay is left out where the role may not ask.
	KnownToRelay *bool `json:"knownToRelay,omitempty"`
}

func newEmit(root *rootCommand) *cobra.Command {
	c := &emitCommand{root: root}
	cmd := &cobra.Command{
		Use:   "emit TYPE --aggregate TYPE/ID [--data JSON | @FILE | -] | [TYPE] --from-query SQL",
		Short: "Write one event, or one for each row of a query",
		Long: `Write one event into the outbox, in a transaction of its own, and say its id.

It is for trying things out and for repairs by hand. An application emits in the transaction of its business change:
that is what an outbox is for.

--data is a JSON object, or @FILE, or - for standard input. With --dedupe-key the same event is written once: the
second time its id is printed again, and other data under the same key is an error.

` + backfillHelp + `

The role needs what 'outboxctl grant producer' gives. Where no database is given, the PostgreSQL of this machine is
taken, as psql would find it.`,
		Example: `  outboxctl emit order_created --aggregate order/123 --data '{"total":12.5}'
  outboxctl emit order_created --aggregate order/123 --data @order.json --tenant acme --dedupe-key acme/123
  jq -c .order dump.json | outboxctl emit order_created --aggregate order/123 --data - --header source=repair
  outboxctl emit order_created --aggregate order --from-query 'SELECT id AS key, to_json(o) AS data FROM orders o'
  outboxctl emit --from-query @orders.sql --rate 200 --yes`,
		Args: func(_ *cobra.Command, args []string) error {
			if c.many.query != "" && len(args) == 0 {
				return nil // a column has the type
			}
			if len(args) != 1 {
				return fmt.Errorf("emit takes one event type, got %d arguments", len(args))
			}
			c.eventType = args[0]
			return nil
		},
	}
	c.in = cmd.InOrStdin
	cmd.Flags().StringVar(&c.aggregate, "aggregate", "", "what the event is about: its type, a slash and its id")
	cmd.Flags().StringVar(&c.data, "data", "{}", "the event's data: a JSON object, @FILE, or - for standard input")
	cmd.Flags().StringVar(&c.tenant, "tenant", "", "whose event it is")
	cmd.Flags().StringVar(&c.key, "dedupe-key", "", "the event's own name: it is written once; beside a tenant it "+
		"begins with TENANT/")
	cmd.Flags().StringVar(&c.module, "namespace", outbox.DefaultNamespace, "the module that the event belongs to")
	cmd.Flags().StringArrayVar(&c.headers, "header", nil, "an attribute of the message, as name=value; once for each")
	c.many.add(cmd)
	return root.show(cmd, c.run)
}

func (c *emitCommand) run(ctx context.Context, p *present.Printer) error {
	if c.many.query != "" {
		return c.backfill(ctx, p)
	}
	event, err := c.event()
	if err != nil {
		return err
	}
	// What is wrong with the event is told before anybody is asked for a database.
	if _, err := outbox.Statement(c.root.schema, event); err != nil {
		return usageError{strings.ReplaceAll(err.Error(), "outbox: event 0", "the event")}
	}
	config, _, err := c.root.configOrLocal(ctx)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return notConnected(err, config)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	report := emitReport{Type: c.eventType}
	// Asked before the event is there: 'outboxctl dev' starts its relay again when it meets a new type, and who asks
	// then finds none.
	known, err := operator.New(conn, c.root.schema).CanPublish(ctx, c.eventType, dev.Name)
	if err == nil {
		report.KnownToRelay = &known
	}
	if err := c.emit(ctx, conn, event, &report); err != nil {
		return c.hint(err)
	}
	if report.KnownToRelay != nil && !known {
		_, _ = fmt.Fprintf(c.root.warn, "outboxctl: no relay that is alive knows the type %s: the event waits until "+
			"one does; it needs a contract in the relay's registry\n", c.eventType)
	}
	return p.One(report, func() []string {
		became := p.Paint(present.Good, "created")
		if !report.Created {
			became = p.Paint(present.Plain, "known already")
		}
		return []string{p.Paint(present.Bold, report.ID.String()) + "  " + became}
	})
}

// event is what the flags say.
func (c *emitCommand) event() (event outbox.Event, err error) {
	aggregateType, aggregateID, found := strings.Cut(c.aggregate, "/")
	if !found || aggregateType == "" || aggregateID == "" {
		return event, usageError{"--aggregate says what the event is about, as TYPE/ID: for instance order/123"}
	}
	data, err := c.readData()
	if err != nil {
		return event, err
	}
	contract := outbox.Define[json.RawMessage](outbox.Contract{
		Type: c.eventType, Aggregate: aggregateType, Namespace: c.module,
		Topic: "-", MaxBytes: outbox.MaxContractBytes, // the relay's registry has the topic
	})
	event = contract.New(aggregateID, data)
	event.TenantID, event.DedupeKey = c.tenant, c.key
	event.Headers, err = c.headerMap()
	return event, err
}

// headerMap is what --header says.
func (c *emitCommand) headerMap() (headers map[string]string, err error) {
	for _, header := range c.headers {
		name, value, found := strings.Cut(header, "=")
		if !found || name == "" {
			return nil, usageError{fmt.Sprintf("--header %.80q: write it as name=value", header)}
		}
		if headers == nil {
			headers = map[string]string{}
		}
		headers[name] = value
	}
	return headers, nil
}

// readData is the JSON of --data.
func (c *emitCommand) readData() (json.RawMessage, error) {
	text, from := []byte(c.data), "--data"
	var err error
	if file, named := strings.CutPrefix(c.data, "@"); named {
		from = file
		text, err = os.ReadFile(file)
	} else if c.data == "-" {
		from = "standard input"
		text, err = io.ReadAll(io.LimitReader(c.in(), outbox.MaxContractBytes+1))
	}
	if err != nil {
		return nil, usageError{fmt.Sprintf("--data: %v", err)}
	}
	return text, checkObject(text, from)
}

// checkObject tells what is wrong with data: where it came from, and where that breaks.
func checkObject(text []byte, from string) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil || object == nil {
		return usageError{from + ` is no JSON object, such as {"total":12.5}` + whereBroken(text, err)}
	}
	if !utf8.Valid(text) {
		return usageError{from + " is not UTF-8"}
	}
	return nil
}

// whereBroken says at which character a document is no JSON. It does not quote it.
func whereBroken(text []byte, err error) string {
	broken := (*json.SyntaxError)(nil)
	if !errors.As(err, &broken) {
		return ""
	}
	line := 1 + strings.Count(string(text[:min(int(broken.Offset), len(text))]), "\n")
	return fmt.Sprintf(": %v, at byte %d in line %d", broken, broken.Offset, line)
}

// emit writes the event.
func (c *emitCommand) emit(ctx context.Context, conn *pgx.Conn, event outbox.Event, report *emitReport) error {
	return outbox.InTx(ctx, conn, func(ctx context.Context, tx pgx.Tx) error {
		receipts, err := outbox.Emit(ctx, outbox.InSchema(tx, c.root.schema), event)
		if err == nil {
			report.ID, report.Created = receipts[0].ID, receipts[0].Created
		}
		return err
	})
}

// hint is the root's; and a key that stands for another event is told as that.
func (c *emitCommand) hint(err error) error {
	if mismatch := (*outbox.DedupeMismatchError)(nil); errors.As(err, &mismatch) {
		return problem{
			code: "dedupe_mismatch", exit: exitFailed,
			err:  fmt.Errorf("the dedupe key %.80q was used before with other data, by event %s", c.key, mismatch.FirstID),
			hint: "give the event a key of its own",
		}
	}
	if state := sqlState(nil); errors.As(err, &state) {
		// The library's own advice is about its calls; this one is about commands.
		if cause, is := state.(error); is {
			return c.root.hint(fmt.Errorf("emit: %w", cause), "producer")
		}
	}
	return err
}
