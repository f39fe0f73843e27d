// Package natsbroker lets a daemon publish to NATS JetStream.
//
// The files of credentials and certificates are read anew at every connect, so that what was rotated is used
// without a restart.
package natsbroker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/posthaste-dev/posthaste/broker/natsjetstream"
	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/daemon/internal/loopback"
)

const (
	name = "nats"
	// sayPeriod is the least time between two lines of the log about servers that cannot be reached.
	sayPeriod = 30 * time.Second
)

var (
	serverURL = config.Secret("nats.url", config.Spec[config.Hidden]{
		Example: "tls://nats.example.com:4222", Doc: "The servers, with commas between. On another machine they need " +
			"`tls://` or `wss://`. Where it is in a file of its own, its user and password are read at every connect.",
	})
	stream = config.Text("nats.stream", config.Spec[string]{
		Otherwise: "whichever has the subject", Doc: "The stream that must take the messages. The subject is the topic.",
	})
	credentialsFile = config.Text("nats.credentials_file", config.Spec[string]{
		Doc: "The user's JWT and seed, read at every connect.",
	})
	caFile = config.Text("nats.ca_file", config.Spec[string]{
		Otherwise: "the system's", Doc: "The authorities of the servers' certificates, read at every connect.",
	})
	certFile = config.Text("nats.cert_file", config.Spec[string]{Doc: "The client's certificate, read at every connect."})
	keyFile  = config.Text("nats.key_file", config.Spec[string]{Doc: "The client's key, read at every connect."})
)

// New is NATS JetStream for a [daemon.Program].
func New() daemon.Broker {
	return daemon.Broker{
		Name: name, Keys: []config.AnyKey{serverURL, stream, credentialsFile, caFile, certFile, keyFile},
		SecretFiles: []config.Key[string]{credentialsFile, keyFile}, Check: check, Open: open,
		Diagnose: diagnose,
	}
}

func check(values *config.Values, insecure bool) (problems []config.Problem) {
	if !values.IsSet(serverURL) {
		problems = append(problems, values.Problem(serverURL, "is missing: broker is nats"))
	}
	servers, _, err := split(serverURL.Get(values).Reveal())
	if err != nil && values.IsSet(serverURL) {
		problems = append(problems, values.Problem(serverURL, "%v", err))
	}
	for server := range strings.SplitSeq(servers, ",") {
		if err := checkServer(server, insecure); err != nil && servers != "" {
			problems = append(problems, values.Problem(serverURL, "%v", err))
		}
	}
	for _, key := range []config.Key[string]{credentialsFile, caFile, certFile, keyFile} {
		if file := key.Get(values); file != "" {
			if _, err := os.Stat(file); err != nil {
				problems = append(problems, values.Problem(key, "%v", err))
			}
		}
	}
	if (certFile.Get(values) == "") != (keyFile.Get(values) == "") {
		problems = append(problems,
			values.Problem(keyFile, "nats.cert_file and nats.key_file belong together: set both or none"))
	}
	return problems
}

// checkServer refuses a server that others could listen to. It quotes no more than the host.
func checkServer(server string, insecure bool) error {
	address, err := url.Parse(server)
	if err != nil {
		return errors.New("a server must be a URL") // split has made it one
	}
	host := address.Hostname()
	switch address.Scheme {
	case "tls", "wss":
	case "nats", "ws":
		if !insecure && !loopback.Is(host) {
			return fmt.Errorf("%s is not on this machine: write tls://%s; or allow plain text with insecure.allow: nats", host,
				address.Host)
		}
	default:
		return fmt.Errorf("%s: the scheme must be tls, nats, wss or ws", host)
	}
	return nil
}

// Connect connects as a daemon does, with the keys of this package from an environment, for whoever wants to look at
// what arrives. It does not wait for the servers. An error is a *[config.Error] where a key is missing or wrong.
func Connect(ctx context.Context, environ []string, insecure bool, logger *slog.Logger) (*nats.Conn, error) {
	set := config.Set{Prefix: "POSTHASTE_", Keys: New().Keys, Check: func(values *config.Values) []config.Problem {
		return check(values, insecure)
	}}
	values, err := set.Load(nil, environ)
	if err != nil {
		return nil, err
	}
	return connect(ctx, values, insecure, logger)
}

func connect(ctx context.Context, values *config.Values, insecure bool, logger *slog.Logger) (*nats.Conn, error) {
	connect := natsjetstream.Connect
	if insecure {
		connect = natsjetstream.ConnectInsecure
	}
	servers, user, err := split(serverURL.Get(values).Reveal())
	if err != nil {
		return nil, err
	}
	login := &login{values: values, logger: logger, user: user}
	return connect(servers, append(natsOptions(ctx, values, logger), login.options(ctx)...)...)
}

func open(ctx context.Context, values *config.Values, options daemon.Options) (*daemon.Connection, error) {
	conn, err := connect(ctx, values, options.Insecure, options.Logger)
	if err != nil {
		return nil, err
	}
	publisher, err := natsjetstream.NewPublisher(conn, natsjetstream.PublisherConfig{
		Stream: stream.Get(values), AckTimeout: max(time.Minute, 2*options.Deadline),
	})
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &daemon.Connection{Publisher: publisher, Close: publisher.Close, Ready: func(context.Context) error {
		return ready(conn)
	}}, nil
}

// natsOptions add files, which the client reads at every connect, and tell the log of connections.
func natsOptions(ctx context.Context, values *config.Values, logger *slog.Logger) []nats.Option {
	var saidAt time.Time
	options := []nats.Option{
		nats.ConnectHandler(func(conn *nats.Conn) {
			logger.InfoContext(ctx, "connected to NATS", slog.String("server", conn.ConnectedAddr()))
		}),
		nats.ReconnectHandler(func(conn *nats.Conn) {
			logger.InfoContext(ctx, "connected to NATS again", slog.String("server", conn.ConnectedAddr()))
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil { // none when the publisher closes it
				logger.WarnContext(ctx, "disconnected from NATS", slog.String("error", err.Error()))
			}
		}),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { // called by one goroutine
			if time.Since(saidAt) >= sayPeriod {
				saidAt = time.Now()
				logger.WarnContext(ctx, "NATS cannot be reached; it is tried again", slog.String("error", err.Error()))
			}
		}),
	}
	if file := credentialsFile.Get(values); file != "" {
		options = append(options, nats.UserCredentials(file))
	}
	if file := caFile.Get(values); file != "" {
		options = append(options, nats.RootCAs(file))
	}
	if file := certFile.Get(values); file != "" {
		options = append(options, nats.ClientCert(file, keyFile.Get(values)))
	}
	return options
}

func ready(conn *nats.Conn) error {
	if conn.IsConnected() {
		return nil
	}
	if err := conn.LastError(); err != nil {
		return fmt.Errorf("not connected: %w", err)
	}
	return errors.New("not connected")
}
