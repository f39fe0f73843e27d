package access

import (
	"errors"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// mostBodyBytes is the largest body of a request: a form with 1 MiB of an event's data, of which a byte may take three.
const mostBodyBytes = 4 << 20

// Options of [Middleware].
type Options struct {
	// Logger gets a line for who was not let in, at most 10 a minute for an address. Defaults to none.
	Logger *slog.Logger
	// Denied answers who was not let in. The status, WWW-Authenticate and Retry-After are in the header already, and
	// it has to write the status. Defaults to the message as plain text.
	Denied func(w http.ResponseWriter, r *http.Request, denial *Denial)

	// now is the clock of a test.
	now func() time.Time
}

// Middleware lets in whom the mode knows, and puts the [User] into the request's context. The handler sees no
// secrets: they are out of the request's header by then.
//
// It also keeps out what a page of another site makes a browser send: everything but a click on a link that leads
// here. And a body must not be larger than 4 MiB.
func Middleware(mode Mode, options Options) func(http.Handler) http.Handler {
	if mode == nil {
		mode = nobody{}
	}
	if options.now == nil {
		options.now = time.Now
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	if options.Denied == nil {
		options.Denied = func(w http.ResponseWriter, _ *http.Request, denial *Denial) {
			http.Error(w, denial.Message, denial.Status)
		}
	}
	return func(next http.Handler) http.Handler {
		return http.MaxBytesHandler(&guard{
			mode: mode, options: options, next: next, logged: newAttempts(options.now),
			crossOrigin: http.NewCrossOriginProtection(),
		}, mostBodyBytes)
	}
}

// guard stands before the console.
type guard struct {
	mode        Mode
	options     Options
	next        http.Handler
	crossOrigin *http.CrossOriginProtection
	// logged bounds the lines in the log.
	logged *attempts
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if g.crossOrigin.Check(r) != nil || embedded(r) {
		g.deny(w, r, &Denial{
			Status: http.StatusForbidden, Message: "Another site made your browser send this. Open the console itself.",
			Reason: "a page of another site sent it",
		})
		return
	}
	user, err := g.mode.Authenticate(r)
	if err == nil && (!user.Role.Valid() || user.Name == "") {
		err = errors.New("the user has no name or no role")
	}
	if err != nil {
		g.deny(w, r, denialOf(err))
		return
	}
	known := r.WithContext(With(r.Context(), user))
	known.Header = r.Header.Clone()
	for _, name := range append([]string{"Authorization"}, g.mode.Rules().SecretHeaders...) {
		known.Header.Del(name)
	}
	g.next.ServeHTTP(w, known)
}

// embedded tells whether a page of another site loads something from here: an image, a frame, a script. It could not
// read it, but each look at a payload leaves a row in a log, and reads cost the database. A link may lead here.
func embedded(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return false
	default:
		return r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document"
	}
}

// denialOf is what to answer to an error. What a mode did not make an answer for is not shown to anybody.
func denialOf(err error) *Denial {
	var denial *Denial
	if errors.As(err, &denial) && denial.Status >= http.StatusBadRequest {
		return denial
	}
	return &Denial{Status: http.StatusForbidden, Message: "You may not open the console.", Reason: err.Error()}
}

func (g *guard) deny(w http.ResponseWriter, r *http.Request, denial *Denial) {
	g.log(r, denial)
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	if denial.Challenge != "" {
		header.Set("WWW-Authenticate", challenge(r, denial.Challenge))
	}
	if denial.RetryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(int(math.Ceil(denial.RetryAfter.Seconds()))))
	}
	g.options.Denied(w, r, denial)
}

// challenge asks for a secret. A page that refreshes itself gets no challenge that opens a dialog over it: it says
// that it was not let in, and the next page that somebody opens has the dialog.
func challenge(r *http.Request, scheme string) string {
	if scheme == basic && !slices.Contains(r.Header["Hx-Request"], "true") {
		return `Basic realm="Posthaste console", charset="UTF-8"`
	}
	return `Bearer realm="Posthaste console"`
}

// log writes who was not let in and why, and never what they sent as a secret.
func (g *guard) log(r *http.Request, denial *Denial) {
	if denial.Reason == "" || g.logged.begin(source(r)) > 0 {
		return
	}
	attributes := []slog.Attr{
		slog.String("remote", shorten(r.RemoteAddr)), slog.Int("status", denial.Status), slog.String("reason", denial.Reason),
	}
	if denial.Name != "" {
		attributes = append(attributes, slog.String("name", shorten(denial.Name)))
	}
	g.options.Logger.LogAttrs(r.Context(), slog.LevelWarn, "somebody was not let into the console", attributes...)
}
