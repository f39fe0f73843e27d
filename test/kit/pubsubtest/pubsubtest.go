// Package pubsubtest starts the Pub/Sub emulator for one test, with a client of Google's. It is apart from the emulator
// because that client starts a goroutine in every program that it is linked into.
package pubsubtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
)

// Start starts an emulator that lasts as long as the test, and a client of its project p, with these topics.
func Start(t testing.TB, topics ...string) (*pubsubemulator.Server, *pubsub.Client) {
	t.Helper()
	server, err := pubsubemulator.Start(pubsubemulator.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	client, err := pubsub.NewClient(t.Context(), "p", option.WithEndpoint(server.Addr()), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	for _, topic := range topics {
		if _, err := client.TopicAdminClient.CreateTopic(t.Context(),
			&pb.Topic{Name: "projects/p/topics/" + topic}); err != nil {
			t.Fatal(err)
		}
	}
	return server, client
}

// SelfSigned makes a certificate of this machine, for [pubsubemulator.Config], and the pool of those who trust it.
func SelfSigned(t testing.TB) (tls.Certificate, *x509.CertPool) {
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
