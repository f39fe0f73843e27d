package natsbroker

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/daemon/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(leakCheck{m}) }

// leakCheck waits for goroutines that were told to end: goleak itself looks for half a second, which may be too little
// on a busy machine.
type leakCheck struct{ *testing.M }

func (c leakCheck) Run() int {
	code := c.M.Run()
	began := time.Now()
	for goleak.Find() != nil { // that takes half a second
		if time.Since(began) > time.Minute {
			break // and fail
		}
	}
	return code
}

// load reads the broker's keys alone.
func load(t *testing.T, insecure bool, environ ...string) (*config.Values, error) {
	t.Helper()
	set := config.Set{Prefix: "POSTHASTE_", Keys: New().Keys, Check: func(values *config.Values) []config.Problem {
		return check(values, insecure)
	}}
	return set.Load(nil, environ)
}

func TestServers(t *testing.T) {
	t.Parallel()
	const needsTLS = "is not on this machine: write tls://"
	for url, problem := range map[string]string{
		"nats://127.0.0.1:4222": "", "localhost": "", "nats://u:hunter2@[::1]:4222": "", "ws://localhost:80": "",
		"tls://u:hunter2@nats.example.com:4222": "", "wss://nats.example.com": "", "tls://a:4222,tls://b:4222": "",
		"nats://u:hunter2@nats.example.com:4222": "nats.example.com " + needsTLS + "nats.example.com:4222",
		"nats.example.com":                       needsTLS,
		"ws://nats.example.com":                  needsTLS,
		"tls://a:4222, nats://b:4222":            "b " + needsTLS + "b:4222",
		"nats://localhost.example.com":           needsTLS,
		"nats://10.0.0.1:4222":                   needsTLS,
		"nats://[2001:db8::1]:4222":              needsTLS + "[2001:db8::1]:4222",
		"http://u:hunter2@nats.example.com":      "the scheme must be",
		"nats://u:hunter2@[broken":               "a server must be a URL",
		"nats://":                                "a server must be a URL",
		"tls://a:4222,":                          "a server must be a URL",
	} {
		_, err := load(t, false, "POSTHASTE_NATS_URL="+url)
		if problem == "" && err != nil || problem != "" && (err == nil || !strings.Contains(err.Error(), problem)) {
			t.Errorf("%s: want %q, got %v", url, problem, err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the password is quoted: %v", err)
		}
		if _, err := load(t, true, "POSTHASTE_NATS_URL="+url); strings.Contains(problem, needsTLS) && err != nil {
			t.Errorf("%s, allowed: %v", url, err)
		}
	}
	if _, err := load(t, false); err == nil || !strings.Contains(err.Error(), "nats.url: is missing") {
		t.Errorf("without a server: %v", err)
	}
}

func TestFilesAreMissing(t *testing.T) {
	t.Parallel()
	_, err := load(t, false, "POSTHASTE_NATS_URL=localhost", "POSTHASTE_NATS_CA_FILE=/no/ca",
		"POSTHASTE_NATS_CERT_FILE=/no/cert", "POSTHASTE_NATS_CREDENTIALS_FILE=/no/creds")
	for _, want := range []string{"/no/ca", "/no/cert", "/no/creds", "belong together"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not told: %v", want, err)
		}
	}
}

// pair writes a certificate and its key.
func pair(t *testing.T, folder string, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(folder, "cert"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	put(t, filepath.Join(folder, "key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
}

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What was rotated is used at the next connect: the client asks these callbacks then.
func TestFilesAreReadAtEveryConnect(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	pair(t, folder, 1)
	creds := filepath.Join(folder, "creds")
	token := func(jwt string) string {
		return "-----BEGIN NATS USER JWT-----\n" + jwt + "\n------END NATS USER JWT------\n"
	}
	put(t, creds, token("first"))
	values, err := load(t, false, "POSTHASTE_NATS_URL=tls://nats.example.com", "POSTHASTE_NATS_CREDENTIALS_FILE="+creds,
		"POSTHASTE_NATS_CA_FILE="+filepath.Join(folder, "cert"), "POSTHASTE_NATS_CERT_FILE="+filepath.Join(folder, "cert"),
		"POSTHASTE_NATS_KEY_FILE="+filepath.Join(folder, "key"))
	if err != nil {
		t.Fatal(err)
	}
	var settings nats.Options
	for _, option := range natsOptions(t.Context(), values, slog.New(slog.DiscardHandler)) {
		if err := option(&settings); err != nil {
			t.Fatal(err)
		}
	}
	firstCA, err := settings.RootCAsCB()
	if err != nil {
		t.Fatal(err)
	}
	pair(t, folder, 2)
	put(t, creds, token("second"))
	if jwt, err := settings.UserJWT(); err != nil || jwt != "second" {
		t.Errorf("the credentials are %q, %v", jwt, err)
	}
	if cert, err := settings.TLSCertCB(); err != nil || cert.Leaf.SerialNumber.Int64() != 2 {
		t.Errorf("the certificate is not the second one: %v", err)
	}
	if ca, err := settings.RootCAsCB(); err != nil || ca.Equal(firstCA) {
		t.Errorf("the authorities are not the second ones: %v", err)
	}
}

// A server that is away when the publisher starts is an outage like any other.
func TestNobodyAnswersAtTheStart(t *testing.T) {
	t.Parallel()
	values, err := load(t, false, "POSTHASTE_NATS_URL=nats://u:hunter2@127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	connection, err := New().Open(t.Context(), values, daemon.Options{
		Deadline: 10 * time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := connection.Ready(t.Context()); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("it is ready: %v", err)
	}
	if err := connection.Close(); err != nil {
		t.Error(err)
	}
}
