package access

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// letIn is a mode that lets a user in, or returns an error.
type letIn struct {
	user User
	err  error
}

func (m letIn) Authenticate(*http.Request) (User, error) { return m.user, m.err }
func (letIn) Rules() Rules                               { return Rules{SecretHeaders: []string{"X-Key"}} }

var somebody = letIn{user: User{Name: "x", Role: Viewer}}

func TestCrossOrigin(t *testing.T) {
	t.Parallel()
	const site, mode, dest = "Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest"
	for name, c := range map[string]struct {
		method  string
		headers []string
		ok      bool
	}{
		"post of a page of the console": {"POST", []string{site, "same-origin"}, true},
		"post of an old browser":        {"POST", []string{"Origin", "https://console.example.com"}, true},
		"post of a program":             {"POST", nil, true},
		"post of another site":          {"POST", []string{site, "cross-site", mode, "navigate", dest, "document"}, false},
		"post of a sister":              {"POST", []string{site, "same-site"}, false},
		"post with another origin":      {"POST", []string{"Origin", "https://other.example.com"}, false},
		"post with no origin":           {"POST", []string{"Origin", "null"}, false},
		"put of another site":           {"PUT", []string{site, "cross-site"}, false},
		"delete of another site":        {"DELETE", []string{site, "cross-site"}, false},
		"patch of another site":         {"PATCH", []string{site, "cross-site"}, false},
		"a method of its own":           {"REDRIVE", []string{site, "cross-site"}, false},
		"get of the console":            {"GET", []string{site, "same-origin", mode, "cors", dest, "empty"}, true},
		"get by hand":                   {"GET", []string{site, "none", mode, "navigate", dest, "document"}, true},
		"get of a program":              {"GET", nil, true},
		"a link on another site":        {"GET", []string{site, "cross-site", mode, "navigate", dest, "document"}, true},
		"an image on another site":      {"GET", []string{site, "cross-site", mode, "no-cors", dest, "image"}, false},
		"a frame on another site":       {"GET", []string{site, "cross-site", mode, "navigate", dest, "iframe"}, false},
		"a script on a sister":          {"GET", []string{site, "same-site", mode, "no-cors", dest, "script"}, false},
		"head of another site":          {"HEAD", []string{site, "cross-site", mode, "no-cors"}, false},
		"a word that is none":           {"GET", []string{site, "other"}, false},
	} {
		r := httptest.NewRequest(c.method, "https://console.example.com/", nil)
		for i := 0; i < len(c.headers); i += 2 {
			r.Header.Set(c.headers[i], c.headers[i+1])
		}
		w := do(Middleware(somebody, Options{})(whoami), r)
		if (w.Code == http.StatusOK) != c.ok || !c.ok && w.Code != http.StatusForbidden {
			t.Errorf("%s: got %d", name, w.Code)
		}
	}
}

// What a page of another site sends is no attempt at a secret, so it cannot lock out the browser's owner.
func TestOtherSitesLockOutNobody(t *testing.T) {
	t.Parallel()
	text, _ := people(t)
	e := newEnv(t, text)
	handler := e.guarded(e.users)
	for range 3 * mostAttempts {
		r := login("oncall", "wrong")
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		wants(t, handler, r, http.StatusForbidden)
	}
	wants(t, handler, login("oncall", password), http.StatusOK)
}

func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	var read int
	var err error
	handler := Middleware(somebody, Options{})(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body []byte
		body, err = io.ReadAll(r.Body)
		read = len(body)
	}))
	for size, ok := range map[int]bool{4 << 20: true, 4<<20 + 1: false} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("x", size)))
		r.ContentLength = -1
		do(handler, r)
		var large *http.MaxBytesError
		if (err == nil) != ok || !ok && !errors.As(err, &large) || read > 4<<20 {
			t.Errorf("%d bytes: read %d, %v", size, read, err)
		}
	}
}

// The handler sees no secret, and the request of the caller keeps its header.
func TestSecretsAreTakenOut(t *testing.T) {
	t.Parallel()
	r := get("Authorization", "Bearer x", "X-Key", "y", "Accept", "text/html")
	handler := Middleware(somebody, Options{})(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if len(r.Header) != 1 || r.Header.Get("Accept") != "text/html" {
			t.Errorf("the handler sees %v", r.Header)
		}
	}))
	wants(t, handler, r, http.StatusOK)
	if len(r.Header) != 3 {
		t.Errorf("the caller's header is %v", r.Header)
	}
	e := newEnv(t, proxyUsers)
	handler = Middleware(newProxy(t, e), Options{})(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Posthaste-Proxy-Secret") != "" {
			t.Error("the handler sees the proxy's secret")
		}
	}))
	wants(t, handler, passed("oncall@example.com"), http.StatusOK)
}

// A mode that says nothing definite lets nobody in, and its error is not for the sender.
func TestDeniedByDefault(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]Mode{
		"no user":           letIn{},
		"no role":           letIn{user: User{Name: "x"}},
		"a role too many":   letIn{user: User{Name: "x", Role: Admin + 1}},
		"no name":           letIn{user: User{Role: Admin}},
		"an error":          letIn{user: User{Name: "x", Role: Admin}, err: errors.New("internal words")},
		"an empty denial":   letIn{user: User{Name: "x", Role: Admin}, err: &Denial{Message: "internal words"}},
		"a denial with 200": letIn{user: User{Name: "x", Role: Admin}, err: &Denial{Status: 200, Message: "internal words"}},
	} {
		w := do(Middleware(mode, Options{})(whoami), get())
		if w.Code != http.StatusForbidden || strings.Contains(w.Body.String(), "internal words") {
			t.Errorf("%s: got %d %q", name, w.Code, w.Body)
		}
	}
}

func TestChallenges(t *testing.T) {
	t.Parallel()
	text, _ := people(t)
	e := newEnv(t, text)
	handler := e.guarded(e.users)
	for want, r := range map[string]*http.Request{
		`Basic realm="Posthaste console", charset="UTF-8"`: get(),
		`Bearer realm="Posthaste console"`:                 get("Authorization", "Bearer x"),
	} {
		if got := wants(t, handler, r, http.StatusUnauthorized).Header().Get("WWW-Authenticate"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	// A page that refreshes itself must not open a dialog over what somebody reads.
	w := wants(t, handler, get("HX-Request", "true"), http.StatusUnauthorized)
	if got := w.Header().Get("WWW-Authenticate"); got != `Bearer realm="Posthaste console"` {
		t.Errorf("a refresh gets %q", got)
	}
	if e.journal.count("somebody was not let") != 1 {
		t.Errorf("a request without a secret is in the log: %s", e.journal)
	}
}

func TestLog(t *testing.T) {
	t.Parallel()
	text, _ := people(t)
	e := newEnv(t, text)
	handler := e.guarded(e.users)
	wants(t, handler, login("x\x1b[31m\n"+strings.Repeat("n", 100), "hunter2hunter2"), http.StatusUnauthorized)
	line := e.journal.String()
	if !strings.Contains(line, "remote=192.0.2.1:4711") || !strings.Contains(line, "status=401") ||
		strings.Count(line, "\n") != 1 || strings.Contains(line, strings.Repeat("n", 61)) ||
		strings.ContainsAny(line, "\x1b") || strings.Contains(line, "hunter2hunter2") {
		t.Errorf("log: %q", line)
	}
	for range 10 * mostAttempts {
		do(handler, login("oncall", "hunter2hunter2"))
		do(handler, get("Sec-Fetch-Site", "cross-site"))
	}
	if got := e.journal.count("\n"); got != mostAttempts {
		t.Errorf("%d lines of one address in a minute", got)
	}
	do(handler, from("192.0.2.2:1", login("oncall", "hunter2hunter2")))
	e.clock.pass(2 * window)
	do(handler, login("oncall", "hunter2hunter2"))
	if got := e.journal.count("\n"); got != mostAttempts+2 {
		t.Errorf("%d lines", got)
	}
}

func TestPageOfTheConsole(t *testing.T) {
	t.Parallel()
	options := Options{Denied: func(w http.ResponseWriter, _ *http.Request, denial *Denial) {
		w.WriteHeader(denial.Status)
		_, _ = w.Write([]byte("<h1>" + denial.Message))
	}}
	text, _ := people(t)
	e := newEnv(t, text)
	w := wants(t, Middleware(e.users, options)(whoami), login("oncall", "wrong"), http.StatusUnauthorized)
	if w.Body.String() != "<h1>The name or the secret is wrong." || w.Header().Get("WWW-Authenticate") == "" {
		t.Errorf("%v %q", w.Header(), w.Body)
	}
}
