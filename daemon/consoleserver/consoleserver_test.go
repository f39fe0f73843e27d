package consoleserver

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/daemon/config"
)

func load(environ ...string) (*config.Values, error) {
	set := config.Set{Prefix: "POSTHASTE_", Keys: New().Keys, Check: check}
	return set.Load(nil, environ)
}

// TestKeys: what cannot be served is told before anything is opened.
func TestKeys(t *testing.T) {
	t.Parallel()
	const on = "POSTHASTE_CONSOLE_LISTEN=127.0.0.1:0"
	for problem, environ := range map[string][]string{
		"a proxy needs a users file":      {on, "POSTHASTE_CONSOLE_PROXY_FROM=10.0.0.0/8"},
		"the users file":                  {on, "POSTHASTE_CONSOLE_USERS=/no/file"},
		"viewer":                          {on, "POSTHASTE_CONSOLE_ROLE=king"},
		"without a problem, being off":    {"POSTHASTE_CONSOLE_USERS=/no/file"},
		"without a problem, as it begins": {on},
	} {
		_, err := load(environ...)
		if strings.HasPrefix(problem, "without") != (err == nil) || err != nil && !strings.Contains(err.Error(), problem) {
			t.Errorf("%q: %v", environ, err)
		}
	}
}

// TestServes a page on an address of its own, of a database that does not answer, until the context ends.
func TestServes(t *testing.T) {
	t.Parallel()
	values, err := load("POSTHASTE_CONSOLE_LISTEN=127.0.0.1:0", "POSTHASTE_CONSOLE_NAME=shop")
	if err != nil {
		t.Fatal(err)
	}
	database, err := pgx.ParseConfig("postgres://nobody@127.0.0.1:1/none?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	serve, err := open(ctx, values, daemon.ConsoleOptions{
		Database: database, Logger: slog.New(slog.NewTextHandler(&log, nil)), Schema: "public",
	})
	if err != nil {
		t.Fatal(err)
	}
	address := regexp.MustCompile(`http://[0-9.:]+`).FindString(log.String())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx) }()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/o/shop/events", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil || answer.StatusCode != http.StatusServiceUnavailable ||
		!strings.Contains(string(page), "The database did not answer") {
		t.Errorf("%d, %v: %s", answer.StatusCode, err, page)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestOff: without an address there is no console.
func TestOff(t *testing.T) {
	t.Parallel()
	values, err := load()
	if err != nil {
		t.Fatal(err)
	}
	if serve, err := open(t.Context(), values, daemon.ConsoleOptions{}); serve != nil || err != nil {
		t.Errorf("%t, %v", serve != nil, err)
	}
}
