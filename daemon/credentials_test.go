package daemon

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// What a file holds is used for the next connection, unless a start would refuse it: then the last good one stays.
func TestCredentials(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "url")
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const first = "postgres://app:hunter1@db.example.com:5433,db2.example.com/shop?sslmode=verify-full"
	put(first)
	found, err := inProcess(t, nil).load(nil, []string{"POSTHASTE_DATABASE_URL_FILE=" + file})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		text, user, password, said string
	}{
		{text: strings.ReplaceAll(first, "hunter1", "hunter2"), user: "app", password: "hunter2"},
		{text: "", user: "app", password: "hunter2", said: "database.url"},
		{
			text: "postgres://app:hunter3@db.example.com:5433,db3.example.com/shop?sslmode=verify-full", user: "app",
			password: "hunter2", said: "restart to go there",
		},
		{
			text: "postgres://app:hunter3@db.example.com:5433,db2.example.com/other?sslmode=verify-full", user: "app",
			password: "hunter2", said: "restart to go there",
		},
		{
			text: strings.ReplaceAll(first, "verify-full", "require"), user: "app", password: "hunter2",
			said: "no longer asks for verified TLS",
		},
		{text: first + "&sslrootcert=/no/ca", user: "app", password: "hunter2", said: "/no/ca"},
		{text: strings.ReplaceAll(first, "app:hunter1", "relay:hunter4"), user: "relay", password: "hunter4"},
	} {
		var log bytes.Buffer
		put(strings.ReplaceAll(first, "hunter1", "hunter2"))
		c, err := newCredentials(found.values, databaseURL, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		put(step.text)
		connection, err := pgx.ParseConfig(first)
		if err != nil {
			t.Fatal(err)
		}
		c.renew(t.Context(), connection)
		c.renew(t.Context(), connection)
		if connection.User != step.user || connection.Password != step.password || connection.Host != "db.example.com" ||
			connection.Port != 5433 {
			t.Errorf("%s: it connects as %s to %s", step.text, connection.User, connection.Host)
		}
		if !strings.Contains(log.String(), step.said) || strings.Contains(log.String(), "hunter") ||
			strings.Count(log.String(), "\n") != min(1, len(step.said)) {
			t.Errorf("%s: want %q, got %s", step.text, step.said, log.String())
		}
	}
}
