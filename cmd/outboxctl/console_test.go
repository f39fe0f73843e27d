package main

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/relay/relaytest"
)

// consoleAddress finds the address in what a command prints.
var consoleAddress = regexp.MustCompile(`https?://[0-9.:]+/`)

// fetch reads a page.
func fetch(t *testing.T, address string, change func(*http.Request)) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(within(t), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(request)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// console runs the command until the test ends, and returns where it listens.
func (e *env) console(t *testing.T, args ...string) string {
	t.Helper()
	ctx, stop := context.WithCancel(within(t))
	reader, writer := io.Pipe()
	ended := make(chan int, 1)
	var said strings.Builder
	go func() {
		line := append([]string{"console", "--listen", "127.0.0.1:0", "--schema", e.schema}, args...)
		code := execute(ctx, line, writer, &said,
			func(name string) string {
				return map[string]string{"DATABASE_URL": e.url, "OTHER_DATABASE_URL": e.other}[name]
			})
		_ = writer.Close()
		ended <- code
	}()
	t.Cleanup(func() {
		stop()
		_ = reader.Close()
		if code := <-ended; code != exitDone {
			t.Errorf("it ended with %d: %s", code, said.String())
		}
	})
	line, err := bufio.NewReader(reader).ReadString('\n')
	if err != nil {
		t.Fatalf("it says nothing: %v", err)
	}
	return consoleAddress.FindString(line)
}

// TestConsoleServes whoever is on this machine, who may look; with users only those, each with their role.
func TestConsoleServes(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.letters(t, 1)
		address := e.console(t)
		if status, body := fetch(t, address, nil); status != http.StatusOK || !strings.Contains(body, "1 event is dead") {
			t.Errorf("%d: %s", status, body)
		}
		if status, _ := fetch(t, address+"o/outbox/replay", nil); status != http.StatusForbidden {
			t.Errorf("a viewer plans a job: %d", status)
		}
		if status, _ := fetch(t, address, func(r *http.Request) { r.Host = "evil.example" }); status != http.StatusForbidden {
			t.Errorf("another name leads here: %d", status)
		}

		code, out, _ := e.call(t, "console", "token", "ada", "operator")
		if code != exitDone {
			t.Fatal(code, out)
		}
		token := regexp.MustCompile(`token: (\S+)`).FindStringSubmatch(out)[1]
		users := filepath.Join(t.TempDir(), "users.json")
		_, file, _ := strings.Cut(out, "in the users file:\n")
		if err := os.WriteFile(users, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		address = e.console(t, "--users", users)
		if status, _ := fetch(t, address, nil); status != http.StatusUnauthorized {
			t.Errorf("without a token: %d", status)
		}
		status, body := fetch(t, address+"o/outbox/replay", func(r *http.Request) { r.SetBasicAuth("ada", token) })
		if status != http.StatusOK || !strings.Contains(body, "ada") {
			t.Errorf("with a token: %d: %s", status, body)
		}
	})
}

// TestConsoleOfSeveralDatabases: each outbox is read where its variable says, and the command's own database is not
// asked where no outbox is in it.
func TestConsoleOfSeveralDatabases(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		pool, schema := relaytest.Database(t, e.url)
		second := &env{url: "postgres://127.0.0.1:1/nowhere?sslmode=disable", other: e.url, pool: pool, schema: schema}
		second.letters(t, 2)
		e.letters(t, 1)
		address := second.console(t, "--outbox", "one="+e.schema+"@OTHER_DATABASE_URL", "--outbox",
			"two="+schema+"@OTHER_DATABASE_URL")
		for outbox, says := range map[string]string{"one": "1 event is dead", "two": "2 events are dead"} {
			if status, body := fetch(t, address+"o/"+outbox+"/", nil); status != http.StatusOK || !strings.Contains(body, says) {
				t.Errorf("%s: %d: %s", outbox, status, body)
			}
		}
	})
}

// TestConsoleBehindAPooler: where the address says so it sets nothing that a pooler refuses, and where it does not, the
// refusal says what to write.
func TestConsoleBehindAPooler(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		if !strings.HasSuffix(t.Name(), "postgres18") {
			return // the pooler of the tests stands before the other server
		}
		pooler := cmp.Or(os.Getenv("SERVICES_PGBOUNCER_URL"), "postgres://postgres@127.0.0.1:16432/posthaste?sslmode=disable")
		e.letters(t, 1)
		e.url = pooler + "&default_query_exec_mode=exec"
		status, body := fetch(t, e.console(t), nil)
		if status != http.StatusOK || !strings.Contains(body, "1 event is dead") {
			t.Errorf("%d: %s", status, body)
		}
		e.url = pooler
		if code, _, said := e.call(t, "console", "--listen", "127.0.0.1:0"); code == exitDone ||
			!strings.Contains(said, "default_query_exec_mode=exec") {
			t.Errorf("%d: %s", code, said)
		}
	})
}

// TestConsoleIsNotOpenedUnsafely: on other addresses only with users, and with TLS.
func TestConsoleIsNotOpenedUnsafely(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		for _, call := range []struct {
			args string
			code int
			says string
		}{
			{"--listen 0.0.0.0:0", 2, "give --users FILE"},
			{"--role king", 2, "must be viewer, operator, admin"},
			{"--proxy-from 10.0.0.0/8", 2, "a proxy needs a users file"},
			{"--users /none", 2, "users file"},
			{"--outbox Shop=x", 2, "lower-case"},
			{"--outbox shop", 2, "NAME=SCHEMA"},
			{"--outbox shop=x@", 2, "NAME=SCHEMA@VARIABLE"},
			{"--outbox shop=x@NONE", 2, "neither NONE nor NONE_FILE"},
			{"--mask email", 2, "JSON pointer"},
			{"--listen nowhere", 2, "HOST:PORT"},
		} {
			code, _, said := e.call(t, append([]string{"console", "--schema", e.schema}, strings.Fields(call.args)...)...)
			if code != call.code || !strings.Contains(said, call.says) {
				t.Errorf("%s: %d: %s", call.args, code, said)
			}
		}
	})
}
