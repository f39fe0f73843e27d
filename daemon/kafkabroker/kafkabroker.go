// Package kafkabroker lets a daemon publish to Apache Kafka.
//
// The files of passwords and certificates are read anew at every connect, so that what was rotated is used without a
// restart.
package kafkabroker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/posthaste-dev/posthaste/broker/kafka"
	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/daemon/internal/loopback"
)

const name = "kafka"

// The ways of a login.
const (
	plainLogin = "plain"
	scram256   = "scram-sha-256"
	scram512   = "scram-sha-512"
)

var (
	brokers = config.List("kafka.brokers", config.Spec[[]string]{
		Example: "kafka-1.example.com:9093, kafka-2.example.com:9093",
		Doc: "Brokers of the cluster that are asked first, as host:port. With those on other machines it speaks " +
			"verified TLS.",
	})
	useTLS = config.Boolean("kafka.tls", config.Spec[bool]{
		Doc: "TLS also with brokers on this machine, and with all where plain text is allowed.",
	})
	caFile = config.Text("kafka.ca_file", config.Spec[string]{
		Otherwise: "the system's", Doc: "The authorities of the brokers' certificates, read at every connect.",
	})
	certFile = config.Text("kafka.cert_file", config.Spec[string]{Doc: "The client's certificate, read at every connect."})
	keyFile  = config.Text("kafka.key_file", config.Spec[string]{Doc: "The client's key, read at every connect."})
	user     = config.Text("kafka.user", config.Spec[string]{
		Otherwise: "no login", Doc: "The user for SASL.",
	})
	password = config.Secret("kafka.password", config.Spec[config.Hidden]{
		Doc: "The user's password. Where it is in a file of its own, it is read at every connect.",
	})
	mechanism = config.Choice("kafka.sasl_mechanism", []string{plainLogin, scram256, scram512}, config.Spec[string]{
		Default: scram512, Doc: "How the user shows the password. `plain` sends it to the broker.",
	})
	compression = config.Choice("kafka.compression", kafka.Compressions(), config.Spec[string]{
		Default: "snappy", Doc: "How batches are compressed.",
	})
	maxMessageBytes = config.Size("kafka.max_message_bytes", config.Spec[int]{
		Otherwise: "the topic's max.message.bytes",
		Doc:       "How large a message may be with its key and headers, before it is compressed. Larger events are dead.",
	})
)

// New is Kafka for a [daemon.Program].
func New() daemon.Broker {
	return daemon.Broker{
		Name: name,
		Keys: []config.AnyKey{
			brokers, useTLS, caFile, certFile, keyFile, user, password, mechanism, compression, maxMessageBytes,
		},
		SecretFiles: []config.Key[string]{keyFile}, Check: check, Open: open, Diagnose: diagnose,
	}
}

func check(values *config.Values, insecure bool) (problems []config.Problem) {
	if len(brokers.Get(values)) == 0 {
		problems = append(problems, values.Problem(brokers, "is missing: broker is kafka"))
	}
	for _, broker := range brokers.Get(values) {
		host, port, err := net.SplitHostPort(broker)
		if err != nil || host == "" || port == "" { // what was written may hold a password
			problems = append(problems, values.Problem(brokers, "a broker must be host:port, without a scheme"))
		} else if values.IsSet(useTLS) && !useTLS.Get(values) && !insecure && !loopback.Is(host) {
			problems = append(problems, values.Problem(useTLS, "%s is not on this machine: leave kafka.tls out; or allow plain "+
				"text with insecure.allow: kafka", host))
		}
	}
	for _, key := range []config.Key[string]{caFile, certFile, keyFile} {
		if file := key.Get(values); file != "" {
			if _, err := os.Stat(file); err != nil {
				problems = append(problems, values.Problem(key, "%v", err))
			}
		}
	}
	if (certFile.Get(values) == "") != (keyFile.Get(values) == "") {
		problems = append(problems,
			values.Problem(keyFile, "kafka.cert_file and kafka.key_file belong together: set both or none"))
	}
	if (user.Get(values) == "") != (password.Get(values).Reveal() == "") {
		problems = append(problems,
			values.Problem(password, "kafka.user and kafka.password belong together: set both or none"))
	}
	return problems
}

// cluster is how the brokers are reached.
func cluster(ctx context.Context, values *config.Values, options daemon.Options) kafka.Cluster {
	reader := &reader{values: values, logger: options.Logger}
	found := kafka.Cluster{
		Brokers: brokers.Get(values), Insecure: options.Insecure, Login: reader.login(ctx),
		Options: clientOptions(ctx, options),
	}
	if useTLS.Get(values) || caFile.Get(values) != "" || certFile.Get(values) != "" {
		found.ReadTLS = reader.tls
	}
	return found
}

// settings keep the time of a request below the relay's deadline, so that the broker has answered when an event is
// given up.
func settings(values *config.Values, deadline time.Duration) kafka.PublisherConfig {
	return kafka.PublisherConfig{
		Timeout: deadline * 4 / 5, Compression: compression.Get(values), MaxMessageBytes: maxMessageBytes.Get(values),
	}
}

func open(ctx context.Context, values *config.Values, options daemon.Options) (*daemon.Connection, error) {
	publisher, err := kafka.NewPublisher(cluster(ctx, values, options), settings(values, options.Deadline))
	if err != nil {
		return nil, err
	}
	return &daemon.Connection{Publisher: publisher, Close: publisher.Close, Ready: func(ctx context.Context) error {
		if err := publisher.Ping(ctx); err != nil {
			return fmt.Errorf("no broker answers: %w", err)
		}
		return nil
	}}, nil
}

var errNoAuthority = errors.New("kafka.ca_file has no certificate")
