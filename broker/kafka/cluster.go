package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
)

// Cluster says how the brokers of a cluster are reached. Only Brokers has no default.
type Cluster struct {
	// Brokers are those that are asked first, as host:port. They name all others.
	Brokers []string
	// TLS is used for every connection. Defaults to none with a broker on this machine, and to a verified
	// connection with every other one, also with those that a broker on this machine names.
	TLS *tls.Config
	// ReadTLS is asked for the configuration at every connect, in place of TLS: certificates that were renewed are
	// used without a restart. Defaults to nothing.
	ReadTLS func() (*tls.Config, error)
	// Login is how the client says who it is, for instance plain.Auth or scram.Auth of franz-go's sasl packages, as
	// mechanisms. Their functions are asked at every connection, so that a password may change. Defaults to nothing.
	Login sasl.Mechanism
	// Insecure gives up the demand for verified TLS: whoever is between here and a broker can read and change
	// events, and take the password. Defaults to false.
	Insecure bool
	// Options of franz-go's client beside these: a client id, a rack, hooks, a logger. What the promises of this
	// package rest on is set after them. Defaults to none.
	Options []kgo.Opt
}

var errUnverified = errors.New("kafka: InsecureSkipVerify lets anybody between here and a broker read and change " +
	"events: give the brokers' authority in RootCAs")

// validate says everything that is wrong with it.
func (c Cluster) validate() error {
	var problems []error
	if len(c.Brokers) == 0 {
		problems = append(problems, errors.New("kafka: Cluster.Brokers is empty: name a broker, as host:port"))
	}
	for _, broker := range c.Brokers {
		host, port, err := net.SplitHostPort(broker)
		if err != nil || host == "" || port == "" {
			// what somebody wrote in place of a host may hold a password
			problems = append(problems, errors.New("kafka: a broker is named as host:port, such as kafka.example.com:9093"))
		}
	}
	if c.TLS != nil && c.TLS.InsecureSkipVerify && !c.Insecure {
		problems = append(problems, errUnverified)
	}
	return errors.Join(problems...)
}

// client makes a client with these options after the cluster's own.
func (c Cluster) client(options ...kgo.Opt) (*kgo.Client, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	all := []kgo.Opt{kgo.ClientID("posthaste"), kgo.MetadataMinAge(250 * time.Millisecond), kgo.DisableClientMetrics()}
	all = append(all, c.Options...)
	all = append(all, kgo.SeedBrokers(c.Brokers...), kgo.Dialer(c.dial))
	if c.Login != nil {
		all = append(all, kgo.SASL(c.Login))
	}
	client, err := kgo.NewClient(append(all, options...)...)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	return client, nil
}

// dialTimeout is how long a connection, and its handshake, may take.
const dialTimeout = 10 * time.Second

// dial connects to a broker. A cluster names its brokers itself, so only here it is known whether one is on this
// machine.
func (c Cluster) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	config := c.TLS
	if c.ReadTLS != nil {
		if config, err = c.ReadTLS(); err != nil {
			return nil, fmt.Errorf("kafka: %w", err)
		}
	}
	plain := &net.Dialer{Timeout: dialTimeout}
	switch {
	case config != nil:
		config = config.Clone()
	case c.Insecure || onThisMachine(host):
		return dialled(plain.DialContext(ctx, network, address))
	default:
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if config.InsecureSkipVerify && !c.Insecure {
		return nil, errUnverified
	}
	if config.ServerName == "" {
		config.ServerName = host
	}
	return dialled((&tls.Dialer{NetDialer: plain, Config: config}).DialContext(ctx, network, address))
}

func dialled(conn net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	return conn, nil
}

func onThisMachine(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
