package kafkabroker

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

func TestBrokers(t *testing.T) {
	t.Parallel()
	for list, problem := range map[string]string{
		"127.0.0.1:9092": "", "kafka.example.com:9093, b:9093": "", "[::1]:9092": "",
		"kafka.example.com":                   "a broker must be host:port",
		"kafka://u:hunter2@kafka.example.com": "a broker must be host:port",
		":9092":                               "a broker must be host:port",
	} {
		_, err := load(t, false, "POSTHASTE_KAFKA_BROKERS="+list)
		if problem == "" && err != nil || problem != "" && (err == nil || !strings.Contains(err.Error(), problem)) {
			t.Errorf("%s: want %q, got %v", list, problem, err)
		}
	}
	if _, err := load(t, false); err == nil || !strings.Contains(err.Error(), "kafka.brokers: is missing") {
		t.Errorf("without a broker: %v", err)
	}
}

func TestWhatBelongsTogether(t *testing.T) {
	t.Parallel()
	const server = "POSTHASTE_KAFKA_BROKERS=kafka.example.com:9093"
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("not a certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for problem, environ := range map[string][]string{
		"kafka.user and kafka.password":      {"POSTHASTE_KAFKA_USER=relay"},
		"kafka.cert_file and kafka.key_file": {"POSTHASTE_KAFKA_CERT_FILE=" + file},
		"no such file":                       {"POSTHASTE_KAFKA_CA_FILE=" + file + "-not"},
		"is not on this machine":             {"POSTHASTE_KAFKA_TLS=false"},
		"must be one of":                     {"POSTHASTE_KAFKA_SASL_MECHANISM=gssapi"},
	} {
		_, err := load(t, false, append(environ, server)...)
		if err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("want %q, got %v", problem, err)
		}
	}
	if _, err := load(t, true, server, "POSTHASTE_KAFKA_TLS=false"); err != nil {
		t.Errorf("plain text, allowed: %v", err)
	}
	values, err := load(t, false, server, "POSTHASTE_KAFKA_CA_FILE="+file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (&reader{values: values}).tls(); err == nil || !strings.Contains(err.Error(), "kafka.ca_file") {
		t.Errorf("a file that is no certificate: %v", err)
	}
}

// TestPasswordFile: the password is read anew at every connect, and a file that is gone leaves the last one.
func TestPasswordFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "password")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	values, err := load(t, false, "POSTHASTE_KAFKA_BROKERS=127.0.0.1:1", "POSTHASTE_KAFKA_USER=relay",
		"POSTHASTE_KAFKA_PASSWORD_FILE="+file)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	r := &reader{values: values, logger: slog.New(slog.NewTextHandler(&log, nil))}
	if r.login(t.Context()) == nil {
		t.Fatal("there is no login")
	}
	for _, want := range []string{"first", "second"} {
		write(want)
		if got := r.current(t.Context()).Reveal(); got != want {
			t.Errorf("the password is %q, want %q", got, want)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got := r.current(t.Context()).Reveal(); got != "second" || !strings.Contains(log.String(), "cannot be read again") {
		t.Errorf("without the file: %q, and the log says %s", got, log.String())
	}
	if strings.Contains(log.String(), "second") {
		t.Error("the log has the password")
	}
}

// TestNoBroker: the publisher opens without one, is not ready, and the doctor says so.
func TestNoBroker(t *testing.T) {
	t.Parallel()
	values, err := load(t, false, "POSTHASTE_KAFKA_BROKERS=127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	options := daemon.Options{
		Deadline: 2 * time.Second, Topics: []string{"orders"}, Logger: slog.New(slog.DiscardHandler),
	}
	connection, err := open(t.Context(), values, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := connection.Ready(ctx); err == nil {
		t.Error("it is ready without a broker")
	}
	if err := connection.Close(); err != nil {
		t.Error(err)
	}
	if found := diagnose(ctx, values, options); len(found) != 1 || found[0].Code != "broker_unreachable" {
		t.Errorf("the doctor finds %+v", found)
	}
}
