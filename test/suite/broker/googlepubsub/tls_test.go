package googlepubsub_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"sync/atomic"
	"testing"

	"cloud.google.com/go/pubsub/v2"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
	"github.com/posthaste-dev/posthaste/test/kit/pubsubtest"
)

// tokens are what the client shows, or cannot have.
type tokens struct{ state atomic.Value }

var errNoToken = errors.New("the metadata server does not answer")

func (s *tokens) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	switch token := s.state.Load().(string); token {
	case "":
		return nil, errNoToken
	default:
		return map[string]string{"authorization": "Bearer " + token}, nil
	}
}

func (s *tokens) RequireTransportSecurity() bool { return true }

// No token can be had, then a wrong one, then the server's certificate is not trusted: the topic's fault each time,
// and gone when it is over.
func TestCredentialsFailAndRecover(t *testing.T) {
	t.Parallel()
	certificate, pool := pubsubtest.SelfSigned(t)
	w := &env{dir: t.TempDir()}
	server, err := pubsubemulator.Start(pubsubemulator.Config{
		Dir: w.dir, Token: "secret",
		TLS: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	w.server = server
	shown := &tokens{}
	shown.state.Store("secret")
	connect := func(trusted *x509.CertPool) *pubsub.Client {
		client, err := pubsub.NewClient(t.Context(), project, option.WithEndpoint(server.Addr()),
			option.WithoutAuthentication(),
			option.WithGRPCDialOption(grpc.WithTransportCredentials(credentials.NewClientTLSFromCert(trusted, ""))),
			option.WithGRPCDialOption(grpc.WithPerRPCCredentials(shown)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
	w.client = connect(pool)
	w.createTopic(t, orders)
	publisher := newPublisher(t, w.client, googlepubsub.PublisherConfig{})
	messages := newMessages("1", 3)
	for _, token := range []string{"", "another"} {
		shown.state.Store(token)
		if err := publisher.Publish(testContext(t), messages[0]); classOf(err) != "topic" {
			t.Errorf("token %q: %v", token, err)
		}
	}
	if err := newPublisher(t, connect(x509.NewCertPool()), googlepubsub.PublisherConfig{}).Publish(testContext(t),
		messages[0]); classOf(err) != "topic" {
		t.Errorf("a certificate that is not trusted: %v", err)
	}
	shown.state.Store("secret")
	sendAll(t, publisher, messages, 3)
	if copies := w.expectHistory(t, messages); copies > 0 {
		t.Errorf("%d copies", copies)
	}
}
