package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/posthaste-dev/posthaste/console/access"
	"github.com/posthaste-dev/posthaste/console/internal/jsonview"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// The bounds of what a request may bring.
const (
	mostText   = 2_048    // characters of a parameter
	mostData   = 1 << 20  // bytes of an event's new data
	mostPage   = 500      // rows
	mostIDs    = 200      // events that are named one by one
	mostFields = 1_000    // parameters
	mostQuery  = 64 << 10 // bytes of a query
	mostExport = 10_000   // events of a file
)

// request is one request, with who makes it and what outbox it is about.
type request struct {
	*http.Request
	w       http.ResponseWriter
	console *Console
	outbox  *served
	user    access.User
	entry   entry
	now     time.Time
	form    url.Values
	tenant  string // whose events are looked for, of a user who is bound to some
}

// failure is an answer that says what is wrong.
type failure struct {
	status     int
	title, why string
}

func (f *failure) Error() string { return f.title + ": " + f.why }

func missing(what string) error {
	return &failure{http.StatusNotFound, "Not found", "There is no such " + what + " here."}
}

func invalid(format string, args ...any) error {
	return &failure{http.StatusBadRequest, "That was not understood", fmt.Sprintf(format, args...)}
}

func forbidden(format string, args ...any) error {
	return &failure{http.StatusForbidden, "You may not", fmt.Sprintf(format, args...)}
}

// serve checks who asks for what, before anything else looks at the request.
func (c *Console) serve(e entry) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		secure(w.Header())
		q := &request{Request: r.WithContext(ctx), w: w, console: c, entry: e, now: time.Now()}
		err := q.enter() //nolint:contextcheck // the request has it
		if err == nil && e.Scope != ScopeNone {
			var end func()
			if end, err = c.turns.take(ctx, q.user.Name); err == nil {
				defer end()
			}
		}
		if err == nil {
			err = e.handle(q)
		}
		if err != nil {
			q.fail(err) //nolint:contextcheck // the request has it
		}
	})
}

func (q *request) enter() error {
	user, ok := access.From(q.Context())
	if !ok {
		return &failure{http.StatusUnauthorized, "Who are you?", "The console has no user for this request."}
	}
	q.user = user
	if !user.Can(q.entry.Role) {
		return forbidden("This needs the role %s, and you have %s.", q.entry.Role, user.Role)
	}
	if q.entry.Payloads && !user.Payloads {
		return forbidden("This needs the right to read payloads, which you do not have.")
	}
	if err := q.parse(); err != nil {
		return err
	}
	name := q.PathValue("outbox")
	if q.entry.Scope == ScopeNone {
		return nil
	}
	if q.outbox = q.console.find(name); q.outbox == nil || !user.MaySee(name) {
		q.outbox = nil
		return missing("outbox")
	}
	if q.entry.Scope == ScopeOutbox && len(user.Tenants) > 0 {
		return forbidden("This page is about all tenants, and you are bound to %s. Your events are under Events.",
			strings.Join(user.Tenants, ", "))
	}
	return nil
}

// parse reads the parameters, of the form of a POST and of the query otherwise. A query beside a form counts for
// nothing: nobody shall think that one of two values was checked.
func (q *request) parse() error {
	if len(q.URL.RawQuery) > mostQuery {
		return invalid("The address is too long.")
	}
	values, err := url.ParseQuery(q.URL.RawQuery)
	if err != nil {
		return invalid("The address has a query that cannot be read.")
	}
	if q.Method == http.MethodPost {
		q.Body = http.MaxBytesReader(q.w, q.Body, 3*mostData+mostQuery) // in a form a byte may take three
		if err := q.ParseForm(); err != nil {
			return invalid("The form is too large or cannot be read.")
		}
		values = q.PostForm
	}
	if len(values) > mostFields {
		return invalid("There are too many parameters.")
	}
	for name, of := range values {
		for _, value := range of {
			long := name == "data" || name == "q" && q.entry.Name == "start" // the filter of a plan may have many types
			if !long && len(value) > mostText || name != "data" && strings.ContainsRune(value, 0) {
				return invalid("The parameter %s is too long, at most %d characters, or has a zero byte.", name, mostText)
			}
		}
	}
	q.form = values
	return nil
}

func (q *request) text(name string) string { return strings.TrimSpace(q.form.Get(name)) }

// number reads a whole number between bounds; what is not there is the usual one.
func (q *request) number(name string, usual, least, most int64) (int64, error) {
	text := q.text(name)
	if text == "" {
		return usual, nil
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(text, ",", ""), 10, 64)
	if err != nil || n < least || n > most {
		return 0, invalid("%s must be a whole number from %d to %d.", name, least, most)
	}
	return n, nil
}

func (q *request) id() (outbox.ID, error) {
	id, err := outbox.ParseID(q.PathValue("id"))
	if err != nil {
		return id, missing("event or job")
	}
	return id, nil
}

// filter reads what somebody looks for. Whoever is bound to tenants looks for theirs only: for the first, unless the
// filter names another of them.
func (q *request) filter(text string) (operator.Filter, error) {
	parse := operator.ParseFilter
	if q.entry.Name == "start" {
		parse = operator.ParsePlanned
	}
	filter, err := parse(text)
	if err != nil {
		return filter, invalid("%s", strings.TrimPrefix(err.Error(), "operator: "))
	}
	if len(filter.Data) > 0 && !q.user.Payloads {
		return filter, forbidden("A filter by data reads payloads, which you may not.")
	}
	for _, asked := range filter.Data {
		if jsonview.Hides(q.outbox.Mask, append([]string{"data"}, asked.Path...)) {
			return filter, forbidden("The values of data.%s are masked here: nobody can search for one.",
				strings.Join(asked.Path, "."))
		}
	}
	return q.bound(filter)
}

func (q *request) bound(filter operator.Filter) (operator.Filter, error) {
	switch {
	case len(q.user.Tenants) == 0:
	case filter.Tenant == "":
		q.tenant = q.user.Tenants[0]
		filter.Tenant = q.tenant
	case !slices.Contains(q.user.Tenants, filter.Tenant):
		return filter, missing("tenant")
	default:
		q.tenant = filter.Tenant
	}
	return filter, nil
}

// owns tells whether the user may see what is of this tenant.
func (q *request) owns(tenant string) bool {
	return q.user.MaySeeTenant(tenant)
}

// fail answers with what is wrong. What is nobody's business is in the log alone.
func (q *request) fail(err error) {
	var known *failure
	if !errors.As(err, &known) {
		known = q.explain(err)
	}
	q.show(known.status, "failure", &page{Title: known.title, Data: known.why})
}

func (q *request) explain(err error) *failure {
	var server *pgconn.PgError
	switch {
	case errors.Is(q.Context().Err(), context.Canceled): // nobody waits for the answer any more
		return &failure{http.StatusServiceUnavailable, "Nobody waits", "The browser has gone."}
	case errors.Is(err, operator.ErrNoEvent):
		return &failure{http.StatusNotFound, "Not found", "There is no such event here. Retention may have deleted it."}
	case errors.Is(err, operator.ErrNoJob):
		return &failure{http.StatusNotFound, "Not found", "There is no such job here."}
	case errors.Is(err, operator.ErrPayloads), errors.Is(err, operator.ErrMayNotLook):
		return &failure{
			http.StatusForbidden, "The console may not",
			"The console's database role may not read payloads. The owner of the tables grants it: outboxctl grant reader ROLE.",
		}
	case errors.Is(err, operator.ErrNotUnderstood):
		return &failure{http.StatusBadRequest, "That was not understood", err.Error()}
	case errors.As(err, &server) && server.Code == "42501":
		q.console.log.WarnContext(q.Context(), "console: the database role lacks a right", "page", q.entry.Name, "error", err)
		return &failure{
			http.StatusForbidden, "The console may not",
			"The console's database role lacks a right for this: " + server.Message +
				". The owner of the tables grants it with: outboxctl grant.",
		}
	case errors.As(err, &server) && server.Code[:2] != "57" && server.Code[:2] != "08":
		q.console.log.WarnContext(q.Context(), "console: the database objects", "page", q.entry.Name, "error", err)
		return &failure{http.StatusConflict, "The database objects", server.Message}
	}
	q.console.log.ErrorContext(q.Context(), "console: a page failed", "page", q.entry.Name, "error", err)
	return &failure{
		http.StatusServiceUnavailable, "The database did not answer",
		"Nothing is known now; the relays do not depend on this page. The console's log says more. Try again.",
	}
}

func (q *request) nothing() error { return missing("page") }

// action is the decision that a form brings.
func (q *request) action() (operator.Action, error) {
	id, err := outbox.ParseID(q.text("action"))
	if err != nil {
		return operator.Action{}, invalid("The form has no id of its action. Open the page again.")
	}
	reason := q.text("reason")
	if reason == "" {
		return operator.Action{}, invalid("Say why: somebody will read it later, perhaps you.")
	}
	return operator.Action{ID: id, Actor: q.user.Name, Reason: reason}, nil
}
