package access

import (
	"bytes"
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// few are the iterations of passwords in tests.
const few = 100

// clock is the time of a test.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// journal is a log that a test reads.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (j *journal) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func (j *journal) count(part string) int { return strings.Count(j.String(), part) }

// hash is what a users file has of a password.
func hash(t *testing.T, password string) string {
	t.Helper()
	text, err := hashPassword(password, few, derivePBKDF2)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// usersFile writes a users file.
func usersFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "users.json")
	writeFile(t, path, text)
	return path
}

// env is the mode of a users file, with a clock and a log.
type env struct {
	path    string
	clock   *clock
	journal *journal
	users   *Users
}

func newEnv(t *testing.T, text string) *env {
	t.Helper()
	e := &env{path: usersFile(t, text), clock: newClock(), journal: &journal{}}
	users, err := OpenUsers(UsersConfig{File: e.path, Logger: e.journal.logger(), now: e.clock.Now, iterations: few})
	if err != nil {
		t.Fatal(err)
	}
	e.users = users
	return e
}

// guarded is a handler behind the mode, which says who was let in.
func (e *env) guarded(mode Mode) http.Handler {
	return Middleware(mode, Options{Logger: e.journal.logger(), now: e.clock.Now})(whoami)
}

var whoami = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	user, ok := From(r.Context())
	if !ok {
		http.Error(w, "nobody", http.StatusInternalServerError)
		return
	}
	_, _ = w.Write([]byte(user.Name + " " + user.Role.String()))
})

// get is a request from an address of the test network, with headers in pairs of name and value.
func get(headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "https://console.example.com/", nil)
	r.RemoteAddr = "192.0.2.1:4711"
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func from(address string, r *http.Request) *http.Request {
	r.RemoteAddr = address
	return r
}

func basicAuth(name, secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(name+":"+secret))
}

func login(name, secret string) *http.Request { return get("Authorization", basicAuth(name, secret)) }

func do(handler http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// wants fails where a request is not answered with a status.
func wants(t *testing.T, handler http.Handler, r *http.Request, status int) *httptest.ResponseRecorder {
	t.Helper()
	w := do(handler, r)
	if w.Code != status {
		t.Fatalf("%s %s: got %d %q, want %d", r.Method, r.Header, w.Code, w.Body, status)
	}
	return w
}
