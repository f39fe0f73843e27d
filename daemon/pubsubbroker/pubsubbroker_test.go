package pubsubbroker

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/daemon/config"
)

func load(t *testing.T, insecure bool, environ ...string) (*config.Values, error) {
	t.Helper()
	set := config.Set{Prefix: "POSTHASTE_", Keys: New().Keys, Check: func(values *config.Values) []config.Problem {
		return check(values, insecure)
	}}
	return set.Load(nil, environ)
}

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A file of credentials that names a program would have the publisher run it.
func TestCredentialsStartNoProgram(t *testing.T) {
	t.Parallel()
	const federation = `"type": "external_account", "audience": "//iam.googleapis.com/x", ` +
		`"subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "token_url": "https://sts.googleapis.com/v1/token"`
	const program = `"credential_source": {"executable": {"command": "/bin/hunter2", "timeout_millis": 5000}}`
	const impersonated = `{"type": "impersonated_service_account", ` +
		`"service_account_impersonation_url": "https://iamcredentials.googleapis.com/v1/x:generateAccessToken", ` +
		`"source_credentials": {` + federation + ", "
	for name, c := range map[string]struct {
		text   string
		starts bool
	}{
		"a token in a file":        {"{" + federation + `, "credential_source": {"file": "/run/token"}}`, false},
		"no program":               {"{" + federation + `, "credential_source": {"file": "/t", "executable": null}}`, false},
		"a program":                {"{" + federation + ", " + program + "}", true},
		"in capital letters":       {"{" + federation + ", " + strings.ToUpper(program[:40]) + program[40:] + "}", true},
		"twice":                    {"{" + program + ", " + federation + `, "credential_source": {"file": "/t"}}`, true},
		"of whom they impersonate": {impersonated + program + "}}", true},
		"whom they impersonate":    {impersonated + `"credential_source": {"file": "/run/token"}}}`, false},
	} {
		_, err := parseCredentials([]byte(c.text))
		if starts := err != nil && strings.Contains(err.Error(), "credential_source.executable"); starts != c.starts {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error quotes the file: %v", name, err)
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	runs := filepath.Join(folder, "runs")
	put(t, runs, `{"type": "external_account_authorized_user", "secret": "hunter2"}`)
	broken := filepath.Join(folder, "broken")
	put(t, broken, `{"type": "service_account", "private_key": "hunter2`)
	const withProject = "POSTHASTE_PUBSUB_PROJECT=p"
	for _, c := range []struct {
		environ []string
		want    string
	}{
		{environ: []string{withProject}},
		{environ: []string{withProject, "POSTHASTE_PUBSUB_ENDPOINT=127.0.0.1:8085"}},
		{environ: []string{withProject, "POSTHASTE_PUBSUB_ENDPOINT=europe-west1-pubsub.googleapis.com:443"}},
		{want: "pubsub.project: is missing"},
		{
			environ: []string{withProject, "POSTHASTE_PUBSUB_ENDPOINT=https://pubsub.googleapis.com"},
			want:    "must be a host and a port",
		},
		{environ: []string{withProject, "POSTHASTE_PUBSUB_CREDENTIALS_FILE=/no/file"}, want: "/no/file"},
		{environ: []string{withProject, "POSTHASTE_PUBSUB_TIMEOUT=0s"}, want: "pubsub.timeout"},
		{environ: []string{withProject, "POSTHASTE_PUBSUB_BATCH_MESSAGES=1001"}, want: "pubsub.batch_messages"},
		{environ: []string{withProject, "POSTHASTE_PUBSUB_CONNECTIONS=0"}, want: "pubsub.connections"},
		{environ: []string{withProject, "POSTHASTE_PUBSUB_IMPERSONATE=nobody"}, want: "the address of a service account"},
		{environ: []string{withProject, "POSTHASTE_PUBSUB_CREDENTIALS_FILE=" + runs}, want: "must be JSON of a type among"},
		{environ: []string{withProject, "POSTHASTE_PUBSUB_CREDENTIALS_FILE=" + broken}, want: "must be JSON of a type among"},
	} {
		_, err := load(t, false, c.environ...)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: want %q, got %v", c.environ, c.want, err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the secret is quoted: %v", err)
		}
	}
}

// A request may take four fifths of the time that the relay gives it, or what the key says.
func TestTimeoutFollowsTheDeadline(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		deadline time.Duration
		key      string
		want     time.Duration // zero: an error
	}{
		{deadline: 10 * time.Second, want: 8 * time.Second},
		{deadline: time.Minute, want: 48 * time.Second},
		{deadline: time.Minute, key: "59s", want: 59 * time.Second},
		{deadline: time.Minute, key: "60s"},
	} {
		environ := []string{"POSTHASTE_PUBSUB_PROJECT=p"}
		if c.key != "" {
			environ = append(environ, "POSTHASTE_PUBSUB_TIMEOUT="+c.key)
		}
		values, err := load(t, false, environ...)
		if err != nil {
			t.Fatal(err)
		}
		settings, err := publisherConfig(values, c.deadline)
		if (err == nil) != (c.want > 0) || err == nil && settings.Timeout != c.want {
			t.Errorf("deadline %s, key %q: %s, %v, want %s", c.deadline, c.key, settings.Timeout, err, c.want)
		}
	}
}

func TestOrderIsLeftOff(t *testing.T) {
	t.Parallel()
	for value, all := range map[string]bool{"clicks,views": false, "*": true} {
		values, err := load(t, false, "POSTHASTE_PUBSUB_PROJECT=p", "POSTHASTE_PUBSUB_UNORDERED="+value)
		if err != nil {
			t.Fatal(err)
		}
		settings, err := publisherConfig(values, time.Minute)
		if err != nil || settings.Unordered != all || !all && len(settings.UnorderedTopics) != 2 {
			t.Errorf("%s: %+v, %v", value, settings, err)
		}
	}
}

// Who pays, and which cloud it is, stands in the file as well.
func TestPropertiesOfTheCredentials(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key.json")
	text := key(t, "first", "http://127.0.0.1:1")
	put(t, file, strings.Replace(text, "{", `{"universe_domain": "example.cloud", "quota_project_id": "payer",`, 1))
	values, err := load(t, false, "POSTHASTE_PUBSUB_PROJECT=p", "POSTHASTE_PUBSUB_CREDENTIALS_FILE="+file)
	if err != nil {
		t.Fatal(err)
	}
	who, err := newIdentity(t.Context(), values)
	if err != nil || who.universe != "example.cloud" {
		t.Errorf("the cloud is %q, %v", who.universe, err)
	}
	if payer, err := who.credentials.QuotaProjectID(t.Context()); err != nil || payer != "payer" {
		t.Errorf("the quota project is %q, %v", payer, err)
	}
}

// Google's client looks at this variable by itself, so it is looked at here first.
func TestAnEmulatorElsewhere(t *testing.T) { //nolint:paralleltest // it changes the environment
	for address, good := range map[string]bool{
		"localhost:8085": true, "[::1]:8085": true, "emulator:8085": false, "emulator": false, "10.0.0.1:8085": false,
	} {
		t.Setenv(emulatorVariable, address)
		if _, err := load(t, false, "POSTHASTE_PUBSUB_PROJECT=p"); (err == nil) != good {
			t.Errorf("%s: %v", address, err)
		}
		if _, err := load(t, true, "POSTHASTE_PUBSUB_PROJECT=p"); err != nil {
			t.Errorf("%s, allowed: %v", address, err)
		}
	}
}

func TestNobodyAnswersAtTheStart(t *testing.T) {
	t.Parallel()
	values, err := load(t, false, "POSTHASTE_PUBSUB_PROJECT=p", "POSTHASTE_PUBSUB_ENDPOINT=127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	connection, err := New().Open(t.Context(), values, daemon.Options{
		Deadline: 10 * time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := connection.Ready(ctx); err == nil {
		t.Error("it is ready")
	}
	if err := connection.Close(); err != nil {
		t.Error(err)
	}
}

// The end waits for a publisher that does not end, and then no longer.
func TestTheEndIsBounded(t *testing.T) {
	t.Parallel()
	hangs := make(chan struct{})
	defer close(hangs)
	if err := within(time.Millisecond, func() error { <-hangs; return nil }); err != nil {
		t.Error(err)
	}
	failed := errors.New("no")
	if err := within(time.Hour, func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("the error is lost: %v", err)
	}
}

// key is a service account's file, with tokens from a server of the test.
func key(t *testing.T, id, tokens string) string {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "relay@example.com", "private_key_id": id, "token_uri": tokens,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A key that was rotated signs the next request for a token; one that is half written does not.
func TestTheCredentialsAreReadForEveryToken(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var header struct {
			Kid string `json:"kid"`
		}
		first, _, _ := strings.Cut(r.FormValue("assertion"), ".")
		text, err := base64.RawURLEncoding.DecodeString(first)
		if err == nil {
			err = json.Unmarshal(text, &header)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		// Expired at once, so that every use fetches a new one.
		_, _ = fmt.Fprintf(w, `{"access_token": "by %s", "token_type": "Bearer", "expires_in": 1}`, header.Kid)
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "key.json")
	credentials := &fileCredentials{file: file}
	if _, err := credentials.Token(t.Context()); err == nil {
		t.Error("there is a token without a key")
	}
	want := func(value string) {
		t.Helper()
		token, err := credentials.Token(t.Context())
		if err != nil || token.Value != value {
			t.Fatalf("want a token %q, got %+v, %v", value, token, err)
		}
	}
	put(t, file, key(t, "first", server.URL))
	want("by first")
	second := key(t, "second", server.URL)
	put(t, file, second[:len(second)/2])
	want("by first")
	put(t, file, second)
	want("by second")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	want("by second")
}
