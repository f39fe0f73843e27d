package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/console"
	"github.com/posthaste-dev/posthaste/console/access"
)

// consoleCommand serves the console.
type consoleCommand struct {
	root           *rootCommand
	prefix, role   string
	outboxes, mask []string
	payloads       bool
	registry       registrySource
	settings       access.Settings
}

func newConsole(root *rootCommand) *cobra.Command {
	c := &consoleCommand{root: root, registry: registrySource{root: root}}
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Serve the console: see, understand and repair in a browser",
		Long: `Serve the console: see, understand and repair in a browser. It runs until Ctrl-C.

It listens on this machine alone, for whoever is on it, who can look and change nothing; --role operator lets them
decide, and --payloads look at payloads, each look of which is written into the log of actions. What the console can do
in the database is what its database role can: 'outboxctl grant viewer ROLE', operator, and reader for payloads.

On another address it needs users: --users FILE, which 'outboxctl console token' helps to write, and TLS by --tls-cert
and --tls-key. Behind a proxy that knows who people are --proxy-from names the proxy's networks.

One console serves several outboxes: --outbox NAME=SCHEMA for each, and NAME=SCHEMA@VARIABLE for one in another
database, whose URL that environment variable has, or the file that VARIABLE_FILE names. With --registry, or --config of
outbox-publisher, it compares types with the contracts, and holds what somebody edits to them.`,
		Example: `  outboxctl console
  outboxctl console --role operator --payloads
  outboxctl console --outbox shop=shop --outbox billing=billing
  outboxctl console --outbox shop=public --outbox billing=public@BILLING_DATABASE_URL
  outboxctl console --role operator --registry registry.yaml
  outboxctl console --listen :8443 --users users.json --tls-cert cert.pem --tls-key key.pem`,
		Args: cobra.NoArgs,
		RunE: run(c.run),
	}
	flags := c.registry.flags(cmd).Flags()
	flags.StringVar(&c.settings.Listen, "listen", "127.0.0.1:8087", "where it listens")
	flags.StringVar(&c.prefix, "prefix", "", "the path under which a proxy shows it, such as /outbox")
	flags.StringArrayVar(&c.outboxes, "outbox", nil,
		"an outbox as NAME=SCHEMA or NAME=SCHEMA@VARIABLE (default: one, of --schema)")
	flags.StringArrayVar(&c.mask, "mask", nil,
		"a JSON pointer whose value nobody sees, such as /data/email or /data/*/iban")
	flags.StringVar(&c.role, "role", "viewer", "what whoever is on this machine may do: viewer, operator, admin")
	flags.BoolVar(&c.payloads, "payloads", false, "let them look at payloads as well")
	flags.StringVar(&c.settings.Users, "users", "", "a file of users")
	flags.BoolVar(&c.settings.GroupMayRead, "group-may-read", false,
		"the group of the files with secrets may read them, as in a pod")
	flags.StringVar(&c.settings.ProxyFrom, "proxy-from", "", "networks of a proxy that says who somebody is, with commas")
	flags.StringVar(&c.settings.ProxySecretFile, "proxy-secret-file", "", "a file with the secret that this proxy sends")
	flags.StringVar(&c.settings.TLSCert, "tls-cert", "", "a file with the certificate")
	flags.StringVar(&c.settings.TLSKey, "tls-key", "", "a file with its key")
	flags.BoolVar(&c.settings.AllowPlainHTTP, "allow-plain-http", false,
		"another address without TLS, behind a proxy that ends TLS")
	cmd.AddCommand(newConsoleToken())
	return cmd
}

func (c *consoleCommand) run(ctx context.Context, out io.Writer) error {
	logger := slog.New(slog.NewTextHandler(c.root.warn, nil))
	role, err := access.ParseRole(c.role)
	if err != nil {
		return usageError{"--role: " + err.Error()}
	}
	c.settings.Local = access.User{Name: c.root.actor(""), Role: role, Payloads: c.payloads}
	handler, end, err := c.handler(ctx, logger)
	if err != nil {
		return err
	}
	defer end()
	door, err := c.settings.Open(ctx, logger)
	if err != nil {
		return usageError{err.Error()}
	}
	address := door.Address + strings.TrimRight(c.prefix, "/") + "/"
	if err := say(out, "the console is at %s until Ctrl-C\n", address); err != nil {
		return errors.Join(err, door.Close())
	}
	return door.Serve(ctx, handler, logger)
}

// handler is the console with a pool for each of its databases.
func (c *consoleCommand) handler(ctx context.Context, logger *slog.Logger) (
	handler *console.Console, end func(), err error,
) {
	registry, given, err := c.registry.find()
	if err != nil {
		return nil, nil, err
	}
	databases := databases{root: c.root, pools: map[string]*pgxpool.Pool{}}
	defer func() {
		if err != nil {
			databases.close()
		}
	}()
	config := console.Config{Prefix: c.prefix, Log: logger}
	pairs := c.outboxes
	if len(pairs) == 0 {
		pairs = []string{"outbox=" + c.root.schema}
	}
	for _, pair := range pairs {
		name, place, _ := strings.Cut(pair, "=")
		schemaName, variable, named := strings.Cut(place, "@")
		if schemaName == "" || named && variable == "" {
			return nil, nil, usageError{fmt.Sprintf("--outbox %q: write it as NAME=SCHEMA or NAME=SCHEMA@VARIABLE", pair)}
		}
		pool, err := databases.pool(ctx, variable)
		if err != nil {
			return nil, nil, err
		}
		one := console.Outbox{Name: name, DB: pool, Schema: schemaName, Mask: c.mask}
		if given {
			one.Check = registry.File.Registry.Check
			if registry.undocumented == nil {
				one.Registry = &registry.Document
			}
		}
		config.Outboxes = append(config.Outboxes, one)
	}
	if handler, err = console.New(config); err != nil {
		return nil, nil, usageError{err.Error()}
	}
	return handler, databases.close, nil
}

// databases are those of the outboxes of one console, by the variable that has the address. The one without a variable
// is the command's own.
type databases struct {
	root  *rootCommand
	pools map[string]*pgxpool.Pool
}

func (d *databases) close() {
	for _, pool := range d.pools {
		pool.Close()
	}
}

// pool opens a database, once.
func (d *databases) pool(ctx context.Context, variable string) (*pgxpool.Pool, error) {
	if pool := d.pools[variable]; pool != nil {
		return pool, nil
	}
	connection, err := d.connection(variable)
	if err != nil {
		return nil, err
	}
	pool, err := console.PoolOf(ctx, inOwnMode(connection), nil)
	if err != nil {
		return nil, err
	}
	d.pools[variable] = pool
	if err := pool.Ping(ctx); err != nil {
		return nil, notConnected(err, connection)
	}
	return pool, nil
}

func (d *databases) connection(variable string) (*pgx.ConnConfig, error) {
	if variable == "" {
		return d.root.config()
	}
	address, err := d.root.secret(variable)
	if err != nil {
		return nil, err
	}
	if address == "" {
		return nil, usageError{fmt.Sprintf("--outbox: neither %s nor %s_FILE is set: one of them has the database's URL",
			variable, variable)}
	}
	return d.root.configOf(address)
}

// inOwnMode has the query mode that the address names: by that the console tells a pooler, which takes no bounds of a
// session, from a server.
func inOwnMode(config *pgx.ConnConfig) *pgx.ConnConfig {
	if parsed, err := pgx.ParseConfig(config.ConnString()); err == nil {
		config.DefaultQueryExecMode = parsed.DefaultQueryExecMode
	}
	return config
}

// newConsoleToken makes a secret for a users file.
func newConsoleToken() *cobra.Command {
	return &cobra.Command{
		Use:   "token NAME ROLE",
		Short: "Make a token for a user of the console, and the user's entry in the users file",
		Long: `Make a token for a user of the console, and print it with the user's entry in the users file. The token is
shown this once: the file has its hash alone. A browser asks for it as the password of the name; programs send it as
"Authorization: Bearer TOKEN".`,
		Example: "  outboxctl console token oncall@example.com operator",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			role, err := access.ParseRole(args[1])
			if err != nil {
				return usageError{err.Error()}
			}
			token, stored := access.NewToken()
			return run(func(_ context.Context, out io.Writer) error {
				return say(out, `token: %s

in the users file:
{"users": [
  {"name": %q, "role": %q, "secret": %q}
]}
`, token, args[0], role, stored)
			})(cmd, args)
		},
	}
}
