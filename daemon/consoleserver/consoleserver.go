// Package consoleserver lets a daemon serve the console, on an address of its own and with a pool of its own: what
// people look at starves neither the relay nor the probes.
package consoleserver

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/posthaste-dev/posthaste/console"
	"github.com/posthaste-dev/posthaste/console/access"
	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/daemon/config"
)

var (
	listen = config.Text("console.listen", config.Spec[string]{
		Otherwise: "none: there is no console", Example: "127.0.0.1:8087",
		Doc: "Where the console listens. On another address than this machine's own it needs `console.users`, and TLS.",
	})
	role = config.Choice("console.role", []string{"viewer", "operator", "admin"}, config.Spec[string]{
		Default: "viewer", Doc: "What whoever is on this machine may do where there is no `console.users`.",
	})
	users = config.Text("console.users", config.Spec[string]{
		Otherwise: "none: whoever is on this machine", Example: "/etc/posthaste/users.json",
		Doc: "A file with the users, which `outboxctl console token` helps to write. It is read again when it has changed.",
	})
	proxyFrom = config.Text("console.proxy_from", config.Spec[string]{
		Otherwise: "none", Example: "10.1.2.3",
		Doc: "The networks of a proxy that says who somebody is, with commas between.",
	})
	proxySecret = config.Text("console.proxy_secret_file", config.Spec[string]{
		Otherwise: "none", Doc: "A file with the secret that this proxy proves itself with.",
	})
	tlsCert = config.Text("console.tls_cert", config.Spec[string]{
		Otherwise: "none", Doc: "A file with the console's certificate. It is read again when it has changed.",
	})
	tlsKey = config.Text("console.tls_key", config.Spec[string]{Otherwise: "none", Doc: "A file with its key."})
	plain  = config.Boolean("console.allow_plain_http", config.Spec[bool]{
		Doc: "Another address without TLS, behind a proxy that ends TLS itself.",
	})
	group = config.Boolean("console.group_may_read", config.Spec[bool]{
		Doc: "The group of the files with secrets may read them, as in a pod.",
	})
	mask = config.List("console.mask", config.Spec[[]string]{
		Otherwise: "none", Example: "/data/email,/data/*/iban",
		Doc: "JSON pointers of values in payloads that nobody sees in the console.",
	})
	name = config.Text("console.name", config.Spec[string]{
		Default: "outbox", Doc: "What its paths and pages call the outbox: lower-case letters, digits, `_` and `-`.",
	})
)

// New is a console for a [daemon.Program]. It is off unless the key console.listen is set.
func New() *daemon.Console {
	return &daemon.Console{
		Keys:  []config.AnyKey{listen, name, role, users, proxyFrom, proxySecret, tlsCert, tlsKey, plain, group, mask},
		Check: check, Open: open,
	}
}

// settings are the keys as package access has them.
func settings(values *config.Values) (access.Settings, error) {
	local, err := access.ParseRole(role.Get(values))
	if err != nil {
		return access.Settings{}, err
	}
	return access.Settings{
		Listen: listen.Get(values), Local: access.User{Name: "local", Role: local}, Users: users.Get(values),
		ProxyFrom: proxyFrom.Get(values), ProxySecretFile: proxySecret.Get(values), TLSCert: tlsCert.Get(values),
		TLSKey: tlsKey.Get(values), AllowPlainHTTP: plain.Get(values), GroupMayRead: group.Get(values),
	}, nil
}

// check says what is wrong without opening anything.
func check(values *config.Values) []config.Problem {
	if listen.Get(values) == "" {
		return nil
	}
	wanted, err := settings(values)
	if err == nil {
		_, err = wanted.Mode(slog.New(slog.DiscardHandler))
	}
	if err != nil {
		return []config.Problem{values.Problem(listen, "%v", err)}
	}
	return nil
}

func open(ctx context.Context, values *config.Values, options daemon.ConsoleOptions) (
	func(context.Context) error, error,
) {
	if listen.Get(values) == "" {
		return nil, nil //nolint:nilnil // nobody wants one
	}
	wanted, err := settings(values)
	if err != nil {
		return nil, err
	}
	pool, err := console.PoolOf(context.WithoutCancel(ctx), options.Database, options.BeforeConnect)
	if err != nil {
		return nil, err
	}
	shown := console.Outbox{
		Name: name.Get(values), DB: pool, Schema: options.Schema, Mask: mask.Get(values), Registry: options.Document,
	}
	if options.Registry != nil {
		shown.Check = options.Registry.Check
	}
	page, err := console.New(console.Config{Outboxes: []console.Outbox{shown}, Log: options.Logger})
	if err != nil {
		pool.Close()
		return nil, err
	}
	door, err := wanted.Open(ctx, options.Logger)
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("console.listen: %w", err)
	}
	options.Logger.InfoContext(ctx, "serving the console", slog.String("address", door.Address))
	return func(ctx context.Context) error {
		defer pool.Close()
		return door.Serve(ctx, page, options.Logger)
	}, nil
}
