package natsjetstream

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Connect connects as a publisher needs it: it reconnects forever, with jitter, also while its
// credentials are refused, and also when no server answers at the start; it keeps no messages while
// disconnected; it notices a dead peer within a minute; and it speaks verified TLS with every server that
// is not on this machine. Servers that another one announces are used only where TLS is forced. The options
// come after these and may add credentials, certificates and handlers.
//
// An error is about the servers' names or the options. Whether there is a connection, its methods tell.
func Connect(servers string, options ...nats.Option) (*nats.Conn, error) {
	return connect(servers, secure, options)
}

// ConnectInsecure is Connect without the demand for TLS: whoever is between here and the server can read and
// change events, and take the password. It goes to the servers that are named here, and to no others that one of them
// announces.
func ConnectInsecure(servers string, options ...nats.Option) (*nats.Conn, error) {
	return connect(servers, func(*nats.Options) error { return nil }, options)
}

func connect(servers string, secure func(*nats.Options) error, options []nats.Option) (*nats.Conn, error) {
	settings := nats.GetDefaultOptions()
	settings.Url = servers
	defaults := []nats.Option{
		nats.Name("posthaste"),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(time.Second),
		nats.ReconnectJitter(500*time.Millisecond, 2*time.Second),
		nats.ReconnectBufSize(-1),
		nats.RetryOnFailedConnect(true),
		nats.IgnoreAuthErrorAbort(),
		nats.PingInterval(20 * time.Second),
		nats.MaxPingsOutstanding(2),
		nats.Timeout(5 * time.Second),
		// The client's own handler prints. What is wrong with a message, Publish returns.
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	}
	for _, option := range append(defaults, options...) {
		if err := option(&settings); err != nil {
			return nil, fmt.Errorf("natsjetstream: %w", err)
		}
	}
	if err := secure(&settings); err != nil {
		return nil, err
	}
	settings.IgnoreDiscoveredServers = settings.IgnoreDiscoveredServers || !forcesTLS(&settings)
	conn, err := settings.Connect()
	if err != nil {
		return nil, fmt.Errorf("natsjetstream: %w", err)
	}
	return conn, nil
}

// secure demands verified TLS of servers elsewhere. There is no way back to plain text: a server that
// offers no TLS is refused.
func secure(settings *nats.Options) error {
	remote := false
	for _, server := range serversOf(settings) {
		local, err := onThisMachine(strings.TrimSpace(server))
		if err != nil {
			return err
		}
		remote = remote || !local
	}
	if !remote {
		return nil
	}
	if settings.TLSConfig == nil {
		settings.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if settings.TLSConfig.InsecureSkipVerify {
		return errors.New("natsjetstream: InsecureSkipVerify lets anybody between here and the server read and change " +
			"events: " +
			"give the server's authority with nats.RootCAs")
	}
	settings.Secure = true
	return nil
}

// forcesTLS tells whether every connection speaks TLS. Where it does not, whoever answers on this machine, or between
// it and the server, could announce a server of their own: events and the password would go there in plain text.
func forcesTLS(settings *nats.Options) bool {
	return settings.Secure || slices.ContainsFunc(serversOf(settings), func(server string) bool {
		scheme, _, _ := strings.Cut(strings.TrimSpace(server), "://")
		return scheme == "tls" || scheme == "wss" // the client then demands it of all
	})
}

// serversOf are the servers that the options name.
func serversOf(settings *nats.Options) []string {
	if settings.Url == "" {
		return settings.Servers
	}
	return append(strings.Split(settings.Url, ","), settings.Servers...)
}

func onThisMachine(server string) (bool, error) {
	if !strings.Contains(server, "://") {
		server = "nats://" + server
	}
	address, err := url.Parse(server)
	if err != nil || address.Hostname() == "" {
		// the URL may hold a password
		return false, errors.New("natsjetstream: a server is a URL such as tls://nats.example.com:4222")
	}
	host := address.Hostname()
	ip := net.ParseIP(host)
	local := host == "localhost" || ip != nil && ip.IsLoopback()
	if !local && address.Scheme == "ws" {
		return false, fmt.Errorf("natsjetstream: %s: a web socket to another machine must be wss://", host)
	}
	return local, nil
}
