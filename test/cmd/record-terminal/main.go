// Command record-terminal makes the pictures of a terminal that the documentation shows: outboxctl dev, top and
// explain, as they are, in an outbox of their own on the test server. It takes about two minutes, because top shows
// what topics carried in minutes that are over.
//
//	go run ./test/cmd/record-terminal -outboxctl bin/outboxctl -into docs/pictures
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/test/kit/command"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

// longestLine is how much of a line a picture has.
const longestLine = 120

func main() { os.Exit(command.Main("record-terminal", record)) }

func record(ctx context.Context, args []string) (ok bool, err error) {
	flags := flag.NewFlagSet("record-terminal", flag.ContinueOnError)
	server := flags.String("url", services.Postgres18(), "the server, as a role that may create databases")
	binary := flags.String("outboxctl", "bin/outboxctl", "the program")
	into := flags.String("into", "docs/pictures", "the folder of the pictures")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	if err := os.MkdirAll(*into, 0o755); err != nil {
		return false, err
	}
	r := &recorder{into: *into}
	if r.binary, err = filepath.Abs(*binary); err != nil {
		return false, err
	}
	drop, err := r.makeDatabase(ctx, *server)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	if err := r.all(ctx); err != nil {
		return false, err
	}
	fmt.Printf("record-terminal pictures=%d ok=true\n", r.pictures)
	return true, nil
}

// A recorder runs the program in a terminal, and draws what it shows.
type recorder struct {
	binary, into, url string
	pictures          int
}

// makeDatabase makes the database that the pictures show.
func (r *recorder) makeDatabase(ctx context.Context, server string) (drop func() error, err error) {
	config, err := pgx.ParseConfig(server)
	if err != nil {
		return nil, err
	}
	admin, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	for _, statement := range []string{"DROP DATABASE IF EXISTS shop WITH (FORCE)", "CREATE DATABASE shop"} {
		if _, err := admin.Exec(ctx, statement); err != nil {
			return nil, errors.Join(err, admin.Close(ctx))
		}
	}
	r.url = (&url.URL{
		Scheme: "postgres", User: url.UserPassword(config.User, config.Password), Path: "shop", RawQuery: "sslmode=disable",
		Host: net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))),
	}).String()
	return func() error {
		ctx := context.WithoutCancel(ctx)
		_, err := admin.Exec(ctx, "DROP DATABASE IF EXISTS shop WITH (FORCE)")
		return errors.Join(err, admin.Close(ctx))
	}, nil
}

// all makes every picture, while the demo's shop emits.
func (r *recorder) all(ctx context.Context) error {
	dev := &screen{}
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- r.run(running, dev, "dev --demo") }()
	// The shipment topic is down for the second half of every 40 s; the first minute is over after at most 60 s.
	waiting := "SELECT id::text FROM outbox_events WHERE event_type = 'shipment_sent' AND state = 0 " +
		"AND created_at < now() - interval '3 s' AND EXISTS (SELECT FROM outbox_minutes) " +
		"AND EXISTS (SELECT FROM outbox_topics WHERE topic = 'shipment' AND paused) LIMIT 1"
	id, err := r.await(ctx, waiting)
	if err != nil {
		return err
	}
	for name, arguments := range map[string]string{"top": "top --count 1", "explain": "events explain " + id} {
		shown := &screen{}
		if err := r.run(ctx, shown, arguments); err != nil {
			return fmt.Errorf("outboxctl %s: %w", arguments, err)
		}
		if err := r.draw(name, strings.TrimSuffix(arguments, " --count 1"), shown.lines()); err != nil {
			return err
		}
	}
	stop()
	<-ended
	lines := dev.lines()
	return r.draw("dev", "dev --demo", lines[:min(len(lines), 34)])
}

// await waits until a statement answers with something.
func (r *recorder) await(ctx context.Context, statement string) (found string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", fmt.Errorf("waited in vain for %s: %w", statement, err)
		}
		var conn *pgx.Conn
		if conn, err = pgx.Connect(ctx, r.url); err != nil {
			continue
		}
		err = conn.QueryRow(ctx, statement).Scan(&found)
		_ = conn.Close(ctx)
		if err == nil {
			return found, nil
		}
	}
}

// run runs outboxctl in a terminal of script(1), until it ends or the context does.
func (r *recorder) run(ctx context.Context, into *screen, arguments string) error {
	into.began = time.Now()
	run := exec.CommandContext(ctx, "script", "-qefc", "stty cols 160 rows 60; exec "+r.binary+" "+arguments, "/dev/null")
	run.Env = []string{"PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "DATABASE_URL=" + r.url}
	run.Stdout = into
	run.Cancel = func() error { return run.Process.Signal(syscall.SIGTERM) }
	run.WaitDelay = 10 * time.Second
	return run.Run()
}

// draw writes a picture.
func (r *recorder) draw(name, arguments string, lines []line) error {
	if len(lines) < 3 {
		return fmt.Errorf("outboxctl %s showed only %d lines", arguments, len(lines))
	}
	r.pictures++
	return os.WriteFile(filepath.Join(r.into, name+".svg"), []byte(picture("$ outboxctl "+arguments, lines)), 0o644)
}

// A screen is what a program has shown, line by line.
type screen struct {
	began time.Time
	mutex sync.Mutex
	all   []line
	open  string
}

// Write takes what the program shows.
func (s *screen) Write(text []byte) (int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.open += strings.ReplaceAll(string(text), "\r", "")
	if at := strings.LastIndex(s.open, clearScreen); at >= 0 {
		s.all, s.open = nil, s.open[at+len(clearScreen):]
	}
	for {
		whole, rest, found := strings.Cut(s.open, "\n")
		if !found {
			return len(text), nil
		}
		s.all, s.open = append(s.all, line{shorten(whole), time.Since(s.began)}), rest
	}
}

// shorten cuts a line that would make the picture wide, and keeps its colours.
func shorten(text string) string {
	var short strings.Builder
	shown := 0
	for text != "" {
		if at := sgr.FindStringIndex(text); at != nil && at[0] == 0 {
			short.WriteString(text[:at[1]])
			text = text[at[1]:]
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		if shown++; shown == longestLine && utf8.RuneCountInString(sgr.ReplaceAllString(text, "")) > 1 {
			return short.String() + "…"
		}
		short.WriteRune(r)
		text = text[size:]
	}
	return short.String()
}

// clearScreen is how top begins its screen anew.
const clearScreen = "\x1b[H\x1b[2J"

func (s *screen) lines() []line {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return append([]line(nil), s.all...)
}
