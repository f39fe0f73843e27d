// Package pubsubbroker lets a daemon publish to Google Cloud Pub/Sub.
//
// A credentials file is read anew whenever a token is fetched, about once an hour, so that a rotated key is used
// without a restart. Without one Google's client finds the credentials of where it runs, and renews them itself.
package pubsubbroker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/daemon/internal/loopback"
)

const (
	name = "pubsub"
	// emulatorVariable is what Google's client looks at by itself.
	emulatorVariable = "PUBSUB_EMULATOR_HOST"
	// longestRequest bounds a request of the client. It must be over when the relay gives an event up.
	longestRequest = 8 * time.Second
)

var (
	project  = config.Text("pubsub.project", config.Spec[string]{Doc: "The project of the topics.", Example: "shop-prod"})
	endpoint = config.Text("pubsub.endpoint", config.Spec[string]{
		Otherwise: "Google's", Example: "europe-west1-pubsub.googleapis.com:443",
		Doc: "Where Pub/Sub is. One on this machine is an emulator: no TLS, no credentials.",
	})
	credentialsFile = config.Text("pubsub.credentials_file", config.Spec[string]{
		Otherwise: "those of where it runs", Doc: "A key or a federation's file, read whenever a token is fetched.",
	})
)

// New is Google Cloud Pub/Sub for a [daemon.Program].
func New() daemon.Broker {
	return daemon.Broker{
		Name: name, System: "gcp_pubsub", Keys: []config.AnyKey{project, endpoint, credentialsFile},
		SecretFiles: []config.Key[string]{credentialsFile}, Check: check, Open: open,
	}
}

func check(values *config.Values, insecure bool) (problems []config.Problem) {
	if project.Get(values) == "" {
		problems = append(problems, values.Problem(project, "is missing: broker is pubsub"))
	}
	if address := endpoint.Get(values); address != "" {
		if _, _, err := net.SplitHostPort(address); err != nil || strings.Contains(address, "/") {
			problems = append(problems, values.Problem(endpoint, "must be a host and a port"))
		}
	}
	if host := hostOf(os.Getenv(emulatorVariable)); host != "" && !loopback.Is(host) && !insecure {
		problems = append(problems, config.Problem{Source: "environment " + emulatorVariable, Text: fmt.Sprintf(
			"%s is not on this machine, and Google's client speaks plain text with an emulator: unset it; or allow plain text "+
				"with insecure.allow: pubsub", host)})
	}
	if file := credentialsFile.Get(values); file != "" {
		if _, err := readCredentials(file); err != nil {
			problems = append(problems, values.Problem(credentialsFile, "%v", err))
		}
	}
	return problems
}

// hostOf is the host of an address with or without a port.
func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

func open(ctx context.Context, values *config.Values, options daemon.Options) (*daemon.Connection, error) {
	client, err := pubsub.NewClient(context.WithoutCancel(ctx), project.Get(values),
		clientOptions(values, options.Insecure)...)
	if err != nil {
		return nil, fmt.Errorf("make the client: %w", err)
	}
	publisher, err := googlepubsub.NewPublisher(client,
		googlepubsub.PublisherConfig{Timeout: min(longestRequest, options.Deadline*4/5)})
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &daemon.Connection{
		Publisher: publisher,
		Ready: func(ctx context.Context) error {
			connection := client.TopicAdminClient.Connection() //nolint:staticcheck // any of its connections will do
			return ready(ctx, connection)
		},
		Close: func() error { return errors.Join(publisher.Close(), client.Close()) },
	}, nil
}

// patience is how long the client waits between two tries to connect, at most. gRPC's own two minutes would add to
// every outage.
const patience = 10 * time.Second

func clientOptions(values *config.Values, plain bool) []option.ClientOption {
	waits := backoff.DefaultConfig
	waits.MaxDelay = patience
	options := []option.ClientOption{
		option.WithGRPCDialOption(grpc.WithConnectParams(grpc.ConnectParams{Backoff: waits, MinConnectTimeout: patience})),
	}
	if address := endpoint.Get(values); address != "" {
		options = append(options, option.WithEndpoint(address))
		if plain || loopback.Is(hostOf(address)) {
			return append(options, option.WithoutAuthentication(),
				option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
		}
	}
	if file := credentialsFile.Get(values); file != "" {
		options = append(options, option.WithAuthCredentials(newCredentials(file)))
	}
	return options
}

// ready looks at a connection. One that is idle, as after a while without events, is asked to connect.
func ready(ctx context.Context, conn *grpc.ClientConn) error {
	for {
		switch state := conn.GetState(); state {
		case connectivity.Ready:
			return nil
		case connectivity.TransientFailure, connectivity.Shutdown:
			return errors.New("not connected")
		case connectivity.Idle, connectivity.Connecting:
			conn.Connect()
			if !conn.WaitForStateChange(ctx, state) {
				return errors.New("not connected yet")
			}
		}
	}
}
