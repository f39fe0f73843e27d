// Package pubsubbroker lets a daemon publish to Google Cloud Pub/Sub.
//
// A credentials file is read anew whenever a token is fetched, about once an hour, so that a rotated key is used
// without a restart. Without one Google's client finds the credentials of where it runs, and renews them itself.
//
// When it starts, it asks Pub/Sub about the topics of the registry and logs what it finds. A publisher that can publish
// to none of them is not ready: its project, its role or its credentials are wrong, and a rollout should stop there.
// One that can publish to some is ready, however many are missing: what is about one topic must not keep the others
// from a new version.
package pubsubbroker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/pubsub/v2"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/daemon/internal/loopback"
)

const (
	name = "pubsub"
	// emulatorVariable is what Google's client looks at by itself.
	emulatorVariable = "PUBSUB_EMULATOR_HOST"
	// longestClose bounds the end, whatever a request may take: the relay has given up by then what is not answered.
	longestClose = 10 * time.Second
)

// New is Google Cloud Pub/Sub for a [daemon.Program].
func New() daemon.Broker {
	return daemon.Broker{
		Name: name, System: "gcp_pubsub", Keys: keys(),
		SecretFiles: []config.Key[string]{credentialsFile}, Check: check, Open: open,
		Diagnose: diagnose,
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
	if email := impersonated.Get(values); email != "" && !strings.Contains(email, "@") {
		problems = append(problems, values.Problem(impersonated, "must be the address of a service account"))
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
	settings, err := publisherConfig(values, options.Deadline)
	if err != nil {
		return nil, err
	}
	dial, err := clientOptions(ctx, values, options, settings.Timeout)
	if err != nil {
		return nil, err
	}
	client, err := pubsub.NewClient(context.WithoutCancel(ctx), project.Get(values), dial...)
	if err != nil {
		return nil, fmt.Errorf("make the client: %w", err)
	}
	publisher, err := googlepubsub.NewPublisher(client, settings)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	topics := watchTopics(ctx, publisher, options.Topics, options.Logger)
	return &daemon.Connection{
		Publisher: publisher,
		Ready: func(ctx context.Context) error {
			connection := client.TopicAdminClient.Connection() //nolint:staticcheck // any of its connections will do
			if err := ready(ctx, connection); err != nil {
				return err
			}
			return topics.ready(ctx)
		},
		Close: func() error {
			topics.close()
			return errors.Join(within(longestClose, publisher.Close), client.Close())
		},
	}, nil
}

// publisherConfig is how the publisher sends. A request is over when the relay gives its event up.
func publisherConfig(values *config.Values, deadline time.Duration) (googlepubsub.PublisherConfig, error) {
	settings := googlepubsub.PublisherConfig{
		Timeout:     cmp.Or(timeout.Get(values), deadline*4/5),
		Compression: compression.Get(values), DelayThreshold: batchDelay.Get(values),
		CountThreshold: batchMessages.Get(values), ByteThreshold: batchBytes.Get(values),
		MaxOutstandingMessages: maxMessages.Get(values), MaxOutstandingBytes: maxBytes.Get(values),
	}
	if settings.Timeout >= deadline {
		return settings, fmt.Errorf("pubsub.timeout: %s, must be below relay.publish_deadline, which is %s", settings.Timeout,
			deadline)
	}
	if topics := unordered.Get(values); slices.Contains(topics, "*") {
		settings.Unordered = true
	} else {
		settings.UnorderedTopics = topics
	}
	return settings, nil
}

// within ends something, and does not wait longer for it than that.
func within(limit time.Duration, end func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- end() }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-timer.C:
		return nil
	}
}
