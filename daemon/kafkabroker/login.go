package kafkabroker

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/daemon/config"
)

// sayPeriod is the least time between two lines of the log that say the same.
const sayPeriod = 30 * time.Second

// reader reads anew at every connect what may have been rotated.
type reader struct {
	values *config.Values
	logger *slog.Logger

	mutex    sync.Mutex
	password config.Hidden // the last that could be read
	saidAt   time.Time
}

// login is the user's; nil: there is none.
func (r *reader) login(ctx context.Context) sasl.Mechanism {
	name := user.Get(r.values)
	if name == "" {
		return nil
	}
	r.password = password.Get(r.values)
	asScram := func(context.Context) (scram.Auth, error) {
		return scram.Auth{User: name, Pass: r.current(ctx).Reveal()}, nil
	}
	switch mechanism.Get(r.values) {
	case plainLogin:
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			return plain.Auth{User: name, Pass: r.current(ctx).Reveal()}, nil
		})
	case scram256:
		return scram.Sha256(asScram)
	default:
		return scram.Sha512(asScram)
	}
}

// current reads the password's file. One that is missing or empty leaves what it held before.
func (r *reader) current(ctx context.Context) config.Hidden {
	read, err := r.values.Current(password)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if err == nil {
		r.password = read
	} else if time.Since(r.saidAt) >= sayPeriod {
		r.saidAt = time.Now()
		r.logger.WarnContext(ctx, "the password of Kafka cannot be read again: the last one stays in use",
			slog.String("error", err.Error()))
	}
	return r.password
}

// tls reads the certificates.
func (r *reader) tls() (*tls.Config, error) {
	found := &tls.Config{MinVersion: tls.VersionTLS12}
	if file := caFile.Get(r.values); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("kafka.ca_file: %w", err)
		}
		found.RootCAs = x509.NewCertPool()
		if !found.RootCAs.AppendCertsFromPEM(text) {
			return nil, errNoAuthority
		}
	}
	if file := certFile.Get(r.values); file != "" {
		pair, err := tls.LoadX509KeyPair(file, keyFile.Get(r.values))
		if err != nil {
			return nil, fmt.Errorf("kafka.cert_file and kafka.key_file: %w", err)
		}
		found.Certificates = []tls.Certificate{pair}
	}
	return found, nil
}

// clientOptions name the program to the brokers, and tell the log of connections.
func clientOptions(ctx context.Context, options daemon.Options) []kgo.Opt {
	all := []kgo.Opt{kgo.WithHooks(&connections{ctx: ctx, logger: options.Logger})}
	if options.UserAgent != "" {
		all = append(all, kgo.ClientID(options.UserAgent))
	}
	return all
}

// connections tells the log of connections that cannot be made, and of the first one that is.
type connections struct {
	ctx    context.Context //nolint:containedctx // the log's
	logger *slog.Logger

	mutex  sync.Mutex
	saidAt time.Time
	lost   bool
	made   bool
}

var _ kgo.HookBrokerConnect = (*connections)(nil)

// OnBrokerConnect is called by the client.
func (c *connections) OnBrokerConnect(broker kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	at := slog.String("server", fmt.Sprintf("%s:%d", broker.Host, broker.Port))
	switch {
	case err != nil && c.ctx.Err() == nil && time.Since(c.saidAt) >= sayPeriod:
		c.saidAt, c.lost = time.Now(), true
		c.logger.WarnContext(c.ctx, "a broker of Kafka cannot be reached; it is tried again", at,
			slog.String("error", err.Error()))
	case err == nil && (c.lost || !c.made):
		c.lost, c.made = false, true
		c.logger.InfoContext(c.ctx, "connected to Kafka", at)
	}
}
