package console

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

//go:embed pages/*.html
var pageFiles embed.FS

// policy lets a page load only what the console itself serves, and run nothing that stands in the page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// page is what a template gets.
type page struct {
	Title string
	// Refresh is after how many seconds the part that is alive is read again; 0: never.
	Refresh int
	Data    any

	q *request
}

// parse reads the templates: each page with the frame around it.
func (c *Console) parse() (map[string]*template.Template, error) {
	frame, err := template.New("frame").Funcs(c.functions()).ParseFS(pageFiles, "pages/frame.html", "pages/parts.html")
	if err != nil {
		return nil, fmt.Errorf("console: the frame: %w", err)
	}
	files, err := fs.Glob(pageFiles, "pages/*.html")
	if err != nil {
		return nil, fmt.Errorf("console: the pages: %w", err)
	}
	pages := map[string]*template.Template{}
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "pages/"), ".html")
		one, err := template.Must(frame.Clone()).ParseFS(pageFiles, file)
		if err != nil {
			return nil, fmt.Errorf("console: the page %s: %w", name, err)
		}
		pages[name] = one
	}
	return pages, nil
}

// show writes a page. It is made as a whole first, so that nobody gets half of one.
func (q *request) show(status int, name string, p *page) {
	p.q = q
	var out bytes.Buffer
	if err := q.console.pages[name].ExecuteTemplate(&out, "frame.html", p); err != nil {
		q.console.log.ErrorContext(q.Context(), "console: a page could not be made", "page", name, "error", err)
		http.Error(q.w, "The page could not be made; the console's log says why.", http.StatusInternalServerError)
		return
	}
	q.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	q.w.WriteHeader(status)
	_, _ = q.w.Write(out.Bytes())
}

func (q *request) ok(name, title string, refresh int, data any) error {
	q.show(http.StatusOK, name, &page{Title: title, Refresh: again(refresh, time.Since(q.now)), Data: data})
	return nil
}

// again is after how many seconds a page that took so long is read again: not so soon that one that is left open costs
// the database more than about a hundredth of a core, some of it side by side, and not so late that nobody would look.
func again(usual int, took time.Duration) int {
	if usual == 0 {
		return 0
	}
	return max(usual, min(longestWait, int(math.Ceil(150*took.Seconds()))))
}

// longestWait is the longest wait of seconds that a slow page makes of a shorter one.
const longestWait = 15

// path is the address of a page of the outbox, with pairs of parameters; empty values are left out.
func (q *request) path(page string, pairs ...string) string {
	return q.console.pathTo(q.outbox.Name, page, pairs...)
}

func (c *Console) pathTo(outboxName, page string, pairs ...string) string {
	values := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			values.Add(pairs[i], pairs[i+1])
		}
	}
	address := c.prefix + "/o/" + outboxName + "/" + page
	if len(values) > 0 {
		address += "?" + values.Encode()
	}
	return address
}

// What the frame shows.

// User is who looks.
func (p *page) User() string { return p.q.user.Name }

// Role is the user's.
func (p *page) Role() string { return p.q.user.Role.String() }

// May tells whether the user may open an entry, so that nobody sees a button that does nothing.
func (p *page) May(name string) bool {
	for _, e := range entries() {
		if e.Name == name {
			return p.q.user.Can(e.Role) && (!e.Payloads || p.q.user.Payloads) &&
				(e.Scope != ScopeOutbox || len(p.q.user.Tenants) == 0)
		}
	}
	return false
}

// Outbox is the name of the one that is shown; empty: none.
func (p *page) Outbox() string {
	if p.q.outbox == nil {
		return ""
	}
	return p.q.outbox.Name
}

// Outboxes are all that the user may see.
func (p *page) Outboxes() (names []string) {
	for _, s := range p.q.console.outboxes {
		if p.q.user.MaySee(s.Name) {
			names = append(names, s.Name)
		}
	}
	return names
}

// Asset is the address of a file that the page loads.
func (p *page) Asset(name string) string { return p.q.console.prefix + "/assets/" + name }

// Root is the address of the list of outboxes.
func (p *page) Root() string { return p.q.console.prefix + "/" }

// To is the address of a page of this outbox.
func (p *page) To(page string, pairs ...string) string { return p.q.path(page, pairs...) }

// Event is the address of an event's page.
func (p *page) Event(id any) string { return p.q.path("events/" + fmt.Sprint(id)) }

// In is the address of the start of another outbox.
func (p *page) In(outboxName string) string { return p.q.console.pathTo(outboxName, p.q.firstPage()) }

// firstPage is the first one of an outbox that the user may see.
func (q *request) firstPage() string {
	if len(q.user.Tenants) > 0 {
		return "events"
	}
	return ""
}

// Tenant is the one that is shown to a user who is bound to some; empty: the user is not, or the page is about none.
func (p *page) Tenant() string { return p.q.tenant }

// link is a name that leads somewhere.
type link struct{ Name, Address string }

// OtherTenants are the others of that user. Each leads to this page with the same filter, for that tenant.
func (p *page) OtherTenants() (others []link) {
	filter, err := operator.ParseFilter(p.q.text("q"))
	if err != nil {
		return nil
	}
	for _, tenant := range p.q.user.Tenants {
		if tenant == p.q.tenant {
			continue
		}
		filter.Tenant = tenant
		address, query := *p.q.URL, p.q.URL.Query()
		query.Set("q", filter.String())
		query.Del("after")
		address.RawQuery = query.Encode()
		others = append(others, link{tenant, address.RequestURI()})
	}
	return others
}

// Is tells whether this is the entry that is shown.
func (p *page) Is(names ...string) bool {
	return slices.Contains(names, p.q.entry.Name)
}

// Here is the address of this page, with its query.
func (p *page) Here() string { return p.q.URL.RequestURI() }

// Now is when the page was made.
func (p *page) Now() string { return p.q.now.UTC().Format("15:04:05") }

// Ago is how long ago something was.
func (p *page) Ago(at any) string { return ago(timeOf(at), p.q.now) }

// NewAction is an id for a decision: a form that is sent twice is done once.
func (p *page) NewAction() string { return outbox.NewID().String() }

func timeOf(at any) time.Time {
	switch at := at.(type) {
	case time.Time:
		return at
	case *time.Time:
		if at != nil {
			return *at
		}
	}
	return time.Time{}
}
