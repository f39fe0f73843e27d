// Package console is a page for the browser, on which operators see, understand and repair an outbox. It is an
// [http.Handler] for any server and under any prefix:
//
//	pool, err := console.OpenPool(ctx, os.Getenv("DATABASE_URL"))
//	page, err := console.New(console.Config{Outboxes: []console.Outbox{{Name: "shop", DB: pool}}})
//	err = http.ListenAndServe("127.0.0.1:8088", access.Middleware(access.Local{Role: access.Viewer})(page))
//
// Who may do what, package access decides: a request without a user sees nothing.
package console

import (
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/console/access"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/outbox/contracts"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// An Outbox is one that the console serves.
type Outbox struct {
	// Name is what the paths and pages call it: lower-case letters, digits, _ and -, at most 64.
	Name string
	// DB is the console's own small pool: see [OpenPool]. What it may do in the database bounds what the console can.
	DB operator.DB
	// Schema is where its tables are. Empty: the default.
	Schema string
	// Mask are JSON pointers into payloads, such as /data/email, whose values nobody sees here. A * stands for any key
	// or index.
	Mask []string
	// Registry is the contracts that the screen of types compares with what was emitted. Nil: what relays know.
	Registry *contracts.Document
	// Check holds an event that somebody edits to its contract, as [outbox.Registry.Check] does. Nil: a relay does so,
	// after the event was made.
	Check func(outbox.Stored) (outbox.Contract, error)
}

// Config is what a console serves, and how.
type Config struct {
	// Outboxes are shown in this order.
	Outboxes []Outbox
	// Prefix is the path under which the console is mounted, such as /outbox. Empty: the root.
	Prefix string
	// Log gets what went wrong inside. Nil: slog.Default().
	Log *slog.Logger
}

// Console is the handler.
type Console struct {
	prefix   string
	outboxes []*served
	pages    map[string]*template.Template
	mux      *http.ServeMux
	log      *slog.Logger
	turns    turns
}

// served is an outbox with what was read of it lately.
type served struct {
	Outbox
	op       *operator.Operator
	status   latest[*operator.Status]
	series   latest[[]operator.Minute]
	topics   latest[[]operator.Topic]
	problems latest[*operator.Problems]
	system   systemReads
}

var outboxName = regexp.MustCompile(`^[a-z0-9_-]{1,64}$`)

// New makes the handler.
func New(config Config) (*Console, error) {
	c := &Console{prefix: strings.TrimRight(config.Prefix, "/"), log: config.Log}
	if c.log == nil {
		c.log = slog.Default()
	}
	if c.prefix != "" && (!strings.HasPrefix(c.prefix, "/") || strings.ContainsAny(c.prefix, "{}?# ")) {
		return nil, fmt.Errorf("console: the prefix %q is no path: write it as /outbox", config.Prefix)
	}
	if len(config.Outboxes) == 0 {
		return nil, errors.New("console: there is no outbox to show")
	}
	for _, one := range config.Outboxes {
		if err := c.add(one); err != nil {
			return nil, err
		}
	}
	pages, err := c.parse()
	if err != nil {
		return nil, err
	}
	c.pages = pages
	c.mux = http.NewServeMux()
	for _, e := range entries() {
		c.mux.Handle(e.Method+" "+c.prefix+e.Pattern, c.serve(e))
	}
	nothing := entry{Entry{Name: "nothing", Role: access.Viewer, Scope: ScopeNone}, (*request).nothing}
	c.mux.Handle(c.prefix+"/", c.serve(nothing))
	return c, nil
}

func (c *Console) add(one Outbox) error {
	if !outboxName.MatchString(one.Name) {
		return fmt.Errorf("console: the outbox name %q must be of lower-case letters, digits, _ and -", one.Name)
	}
	if c.find(one.Name) != nil {
		return fmt.Errorf("console: two outboxes have the name %q", one.Name)
	}
	if one.DB == nil {
		return fmt.Errorf("console: the outbox %q has no database", one.Name)
	}
	for _, pointer := range one.Mask {
		if !strings.HasPrefix(pointer, "/") {
			return fmt.Errorf("console: the mask %q of outbox %q is no JSON pointer: it begins with /", pointer, one.Name)
		}
	}
	s := &served{Outbox: one, op: operator.New(one.DB, one.Schema)}
	c.outboxes = append(c.outboxes, s)
	return nil
}

func (c *Console) find(name string) *served {
	for _, s := range c.outboxes {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// ServeHTTP serves the pages.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.mux.ServeHTTP(w, r) }

// patience is for how long a page waits for the database: longer than its statements may take.
const patience = 12 * time.Second
