package console

import (
	"context"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	product "github.com/posthaste-dev/posthaste/console"
	"github.com/posthaste-dev/posthaste/console/access"
)

// tabMark is a parameter that tells the tabs of the proof apart; the console does not know it.
const tabMark = "tab"

// server has the console on loopback, and the control pages of the proof beside it.
type server struct {
	address string
	http    *http.Server
	ended   chan error
	pool    *pgxpool.Pool
	control string // an injection that the control pages do not escape

	mu      sync.Mutex
	entered map[string]int // by the name of the console's entry
	reread  map[string]int // by tab, how often its page was read again by itself
}

// serve starts it. The user of the hostile outbox has a name that wants to be run.
func serve(ctx context.Context, db *database, name, control string, log *slog.Logger) (*server, error) {
	s := &server{control: control, entered: map[string]int{}, reread: map[string]int{}, ended: make(chan error, 1)}
	address, err := db.address("proof-console-page")
	if err != nil {
		return nil, err
	}
	if s.pool, err = product.OpenPool(ctx, address); err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	handler, err := s.handler(name, log)
	if err != nil {
		s.pool.Close()
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		s.pool.Close()
		return nil, fmt.Errorf("console: %w", err)
	}
	s.address = "http://" + listener.Addr().String()
	s.http = &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	go func() { s.ended <- s.http.Serve(listener) }()
	return s, nil
}

// Close ends it.
func (s *server) Close() error {
	err := s.http.Close()
	s.pool.Close()
	if ended := <-s.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

func (s *server) handler(name string, log *slog.Logger) (http.Handler, error) {
	console, err := product.New(product.Config{
		Outboxes: []product.Outbox{
			{Name: shopName, DB: s.pool, Schema: shopName}, {Name: hostileName, DB: s.pool, Schema: hostileName},
		},
		Log: log,
	})
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	as := func(name string) http.Handler {
		user := access.User{Name: name, Role: access.Admin, Payloads: true}
		return access.Middleware(access.Local(user), access.Options{Logger: log})(console)
	}
	shop, hostile := as("ada"), as(name)
	entries := http.NewServeMux()
	for _, e := range product.Entries() {
		entries.HandleFunc(e.Method+" "+e.Pattern, func(http.ResponseWriter, *http.Request) {})
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_, pattern := entries.Handler(r)
		s.note(r, pattern)
		if strings.HasPrefix(r.URL.Path, "/o/"+hostileName+"/") {
			hostile.ServeHTTP(w, r)
			return
		}
		shop.ServeHTTP(w, r)
	})
	for path, policy := range map[string]string{"/control/policy": controlPolicy, "/control/none": ""} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { s.unescaped(w, policy) })
	}
	return mux, nil
}

func (s *server) note(r *http.Request, pattern string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entered[pattern]++
	if r.Header.Get("Hx-Request") == "true" {
		s.reread[r.URL.Query().Get(tabMark)]++
	}
}

// rereads is how often the page of a tab was read again by itself.
func (s *server) rereads(tab string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reread[tab]
}

// unseen are the pages of the console that nobody has opened.
func (s *server) unseen() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range product.Entries() {
		if s.entered[e.Method+" "+e.Pattern] == 0 {
			names = append(names, e.Name)
		}
	}
	return names
}

// controlPolicy is the console's.
const controlPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// unescaped is a page that has forgotten to escape.
func (s *server) unescaped(w http.ResponseWriter, policy string) {
	if policy != "" {
		w.Header().Set("Content-Security-Policy", policy)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = fmt.Fprintf(w, `<!doctype html><html lang="en"><title>control</title><h1>%s</h1><p>%s</p>`,
		html.EscapeString(s.control), s.control)
}
