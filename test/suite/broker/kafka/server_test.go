package kafka

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/proxy"
	testserver "github.com/posthaste-dev/posthaste/test/kit/server"
)

// The users of the server. Each may do everything until something is forbidden.
const (
	user       = "relay"
	password   = "not for the log"
	iterations = 4096
)

// server is a node of Kafka with three doors: one without a login, where the tests administer it; USERS with a login,
// behind a proxy; and SECURE with a login and TLS.
type server struct {
	*testserver.Kafka
	proxy  *proxy.Proxy
	secure string // host:port
	roots  *x509.CertPool
	admin  *kadm.Client
	direct *kgo.Client
}

func startServer(t *testing.T) *server {
	t.Helper()
	folder := t.TempDir()
	users, err1 := testserver.FreeAddress()
	secure, err2 := testserver.FreeAddress()
	certificate, roots, err3 := certify(folder)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	s := &server{proxy: proxy.New(t, users), secure: secure, roots: roots}
	plain := "org.apache.kafka.common.security.plain.PlainLoginModule required user_" + user + "=\"" + password + "\";"
	scrams := "org.apache.kafka.common.security.scram.ScramLoginModule required;"
	var err error
	s.Kafka, err = testserver.NewKafka(folder, []testserver.KafkaListener{
		{Name: "USERS", Address: users, Advertised: s.proxy.Address(), Protocol: "SASL_PLAINTEXT"},
		{Name: "SECURE", Address: secure, Advertised: secure, Protocol: "SASL_SSL"},
	},
		"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users=User:ANONYMOUS", "allow.everyone.if.no.acl.found=true",
		"sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
		"listener.name.users.plain.sasl.jaas.config="+plain,
		"listener.name.users.scram-sha-256.sasl.jaas.config="+scrams,
		"listener.name.users.scram-sha-512.sasl.jaas.config="+scrams,
		"listener.name.secure.plain.sasl.jaas.config="+plain,
		"listener.name.secure.scram-sha-256.sasl.jaas.config="+scrams,
		"listener.name.secure.scram-sha-512.sasl.jaas.config="+scrams,
		"listener.name.secure.ssl.keystore.type=PEM", "listener.name.secure.ssl.keystore.location="+certificate,
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	s.direct, err = kgo.NewClient(kgo.SeedBrokers(s.Address), kgo.MetadataMinAge(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.direct.Close)
	s.admin = kadm.NewClient(s.direct)
	if err := errors.Join(s.start(t.Context()), s.scram(t.Context(), password)); err != nil {
		t.Fatal(err)
	}
	return s
}

// start starts the server and returns when it takes part in its cluster.
func (s *server) start(ctx context.Context) error {
	if err := s.Start(ctx); err != nil {
		return err
	}
	return eventually.Works(ctx, func() error {
		_, err := s.admin.ListTopics(ctx)
		return err
	})
}

// scram gives the user a password.
func (s *server) scram(ctx context.Context, password string) error {
	for _, mechanism := range []kadm.ScramMechanism{kadm.ScramSha256, kadm.ScramSha512} {
		answer, err := s.admin.AlterUserSCRAMs(ctx, nil, []kadm.UpsertSCRAM{
			{User: user, Mechanism: mechanism, Iterations: iterations, Password: password},
		})
		if err = errors.Join(err, answer.Error()); err != nil {
			return err
		}
	}
	return nil
}

// certify makes a certificate for 127.0.0.1, in a file as Kafka wants it, and the pool that trusts it.
func certify(folder string) (file string, roots *x509.CertPool, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kafka"}, NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return "", nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(public)
	file = filepath.Join(folder, "server.pem")
	return file, roots, os.WriteFile(file, append(text, public...), 0o600)
}

// partitions is how many a topic of these tests has.
const partitions = 4

func (s *server) makeTopic(ctx context.Context, topic string, settings ...string) error {
	configs := map[string]*string{}
	for _, setting := range settings {
		name, value, _ := strings.Cut(setting, "=")
		configs[name] = &value
	}
	if _, err := s.admin.CreateTopic(ctx, partitions, 1, configs, topic); err != nil {
		return err
	}
	return eventually.Works(ctx, func() error { // the controller has it first
		about, err := s.admin.ListTopics(ctx, topic)
		if err == nil && len(about[topic].Partitions) != partitions {
			return fmt.Errorf("the topic %s is not there yet", topic)
		}
		return err
	})
}

// removeTopic removes a topic, and returns when nobody sees it any more.
func (s *server) removeTopic(ctx context.Context, topic string) error {
	if _, err := s.admin.DeleteTopic(ctx, topic); err != nil {
		return err
	}
	return eventually.Works(ctx, func() error {
		about, err := s.admin.ListTopics(ctx, topic)
		if err != nil {
			return err
		}
		if about.Has(topic) {
			return fmt.Errorf("the topic %s is still there", topic)
		}
		return nil
	})
}

// records reads what a topic holds, partition by partition.
func (s *server) records(ctx context.Context, topic string) ([]*kgo.Record, error) {
	return readAll(ctx, s.Address, s.admin, topic)
}

func readAll(ctx context.Context, address string, admin *kadm.Client, topic string) (all []*kgo.Record, err error) {
	ctx, cancel := context.WithTimeout(ctx, eventually.Patience)
	defer cancel()
	ends, err := admin.ListEndOffsets(ctx, topic)
	if err = errors.Join(err, ends.Error()); err != nil {
		return nil, err
	}
	left := map[int32]int64{}
	from := map[int32]kgo.Offset{}
	ends.Each(func(end kadm.ListedOffset) {
		if end.Offset > 0 {
			left[end.Partition], from[end.Partition] = end.Offset, kgo.NewOffset().At(0)
		}
	})
	if len(left) == 0 {
		return nil, nil
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.FetchMaxWait(10*time.Millisecond),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	byPartition := map[int32][]*kgo.Record{}
	for len(left) > 0 {
		fetches := client.PollFetches(ctx)
		if err := errors.Join(ctx.Err(), fetches.Err()); err != nil {
			return nil, err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if end, wanted := left[r.Partition]; wanted {
				byPartition[r.Partition] = append(byPartition[r.Partition], r)
				if r.Offset+1 >= end {
					delete(left, r.Partition)
				}
			}
		})
	}
	for partition := range int32(partitions) {
		all = append(all, byPartition[partition]...)
	}
	return all, nil
}
