package googlepubsub_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
)

// selfSigned is a certificate for this machine, and the pool of who trusts it.
func selfSigned(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(certificate)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

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
	certificate, pool := selfSigned(t)
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
