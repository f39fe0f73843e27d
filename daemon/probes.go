package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

const (
	// probeTimeout bounds what a probe asks of a server.
	probeTimeout = 3 * time.Second
	// probeFresh is how long an answer is kept: however many ask, the servers are asked this often.
	probeFresh = time.Second
)

// probes answer whether the publisher lives and whether it can do its work.
type probes struct {
	*publisher
	stopping   <-chan struct{}
	stuckAfter time.Duration

	mutex     sync.Mutex
	checkedAt time.Time
	answers   []answer
}

// answer is what was found about one thing that the publisher needs.
type answer struct {
	name    string
	problem string // empty: it is well
	note    string
}

// live answers /livez: does the relay's loop turn? It asks no server, so that no outage restarts the process.
func (p *probes) live(w http.ResponseWriter, _ *http.Request) {
	if still := time.Since(p.relay.LastTick()); still > p.stuckAfter {
		reply(w, http.StatusServiceUnavailable,
			fmt.Sprintf("the relay's loop has not turned for %s\n", still.Round(time.Second)))
		return
	}
	reply(w, http.StatusOK, "ok\n")
}

// ready answers /readyz: what keeps the publisher from its work? With ?verbose it names also what does not.
func (p *probes) ready(w http.ResponseWriter, r *http.Request) {
	answers := p.check(r.Context())
	status, text := http.StatusOK, strings.Builder{}
	verbose := r.URL.Query().Has("verbose")
	for _, a := range answers {
		switch {
		case a.problem != "":
			status = http.StatusServiceUnavailable
			fmt.Fprintf(&text, "[-] %s: %s\n", a.name, clean.Line(a.problem)) // a broker's words, or an operator's
		case verbose:
			fmt.Fprintf(&text, "[+] %s: %s\n", a.name, clean.Line(a.note))
		}
	}
	if status == http.StatusOK {
		text.WriteString("ok\n")
	}
	reply(w, status, text.String())
}

func reply(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // it only fails when the caller is gone
}

// check finds out, or returns what was found a moment ago. Those who ask meanwhile wait for the answer.
func (p *probes) check(ctx context.Context) []answer {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.answers == nil || time.Since(p.checkedAt) > probeFresh {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout) // the others wait for it too
		defer cancel()
		var brokers []answer
		var checks sync.WaitGroup
		checks.Go(func() { brokers = p.checkBrokers(ctx) })
		database := p.checkDatabase(ctx)
		checks.Wait()
		p.answers, p.checkedAt = append([]answer{database}, brokers...), time.Now()
	}
	return append(slices.Clone(p.answers), p.checkRelay()...)
}

func (p *probes) checkDatabase(ctx context.Context) answer {
	a := answer{name: "database"}
	var version int
	var installation string
	schema := databaseSchema.Get(p.values)
	err := p.database.QueryRow(ctx,
		`SELECT schema_version, installation::text FROM `+pgx.Identifier{schema, "outbox_meta"}.Sanitize()).Scan(&version,
		&installation)
	failure := (*pgconn.PgError)(nil)
	switch {
	case errors.As(err, &failure):
		a.problem = fmt.Sprintf("refuses, with SQLSTATE %s: %s", failure.Code, p.remedy(failure.Code))
	case err != nil:
		a.problem = "cannot be reached: the log says why; is it up, and does database.url lead to it? When it is back, " +
			"nothing needs to be done"
	case version < relay.SchemaVersion:
		a.problem = fmt.Sprintf("the outbox in schema %q has version %d, this publisher needs %d: run `outboxctl migrate up`",
			schema, version, relay.SchemaVersion)
	default:
		a.note = fmt.Sprintf("schema %q, version %d, installation %s", schema, version, installation)
	}
	return a
}

// remedy says what to do when the database refuses.
func (p *probes) remedy(code string) string {
	switch code {
	case "28P01", "28000":
		return "put the right password or certificate where " + p.values.Source(databaseURL) +
			" has it; files are read again at every connect"
	case "42501":
		return "run `outboxctl grant relay <role>`"
	case "42P01", "3F000":
		return "there is no outbox in this schema: run `outboxctl migrate up`, or set database.schema"
	case "53300":
		return "it has no connection left: raise max_connections, or find out who has them"
	case "57P03":
		return "it is starting or stopping; nothing needs to be done"
	default:
		return "the log says more"
	}
}

// checkBrokers asks all of them at the same time.
func (p *probes) checkBrokers(ctx context.Context) []answer {
	brokers := p.brokers()
	answers := make([]answer, len(brokers))
	var checks sync.WaitGroup
	for i, broker := range brokers {
		answers[i] = answer{name: "broker", note: broker.Name}
		ready := p.connections[broker.Name].Ready
		if ready == nil {
			continue
		}
		checks.Go(func() {
			if err := ready(ctx); err != nil {
				answers[i].problem = cut(broker.Name + ": " + err.Error() + "; it is tried again, and events wait meanwhile")
			}
		})
	}
	checks.Wait()
	return answers
}

// checkRelay looks at the relay itself, which costs nothing.
func (p *probes) checkRelay() []answer {
	stats := p.relay.Stats()
	state := answer{name: "relay", note: fmt.Sprintf("%d lanes, %d events in flight", stats.Lanes, stats.InFlight)}
	if stats.Lanes == 0 {
		state.note += "; other publishers have the lanes, or it has just started"
	}
	if pause := p.relay.RestoreHold(); pause != nil {
		state.problem = cut(fmt.Sprintf("paused, with %d events to send: %s", pause.WouldSend(), pause.Reason))
	}
	select {
	case <-p.stopping:
		state.problem = "draining"
	default:
	}
	return []answer{p.checkTopics(), p.checkOperators(), state}
}

// checkTopics names the topics that carry nothing, each with why.
func (p *probes) checkTopics() answer {
	a := answer{name: "topics", note: "none is paused"}
	paused := p.relay.FailingTopics()
	var reasons []string
	for _, topic := range slices.Sorted(maps.Keys(paused)) {
		if slices.ContainsFunc(p.relay.OperatorPauses(), func(pause operator.Pause) bool { return pause.Covers(topic, "") }) {
			continue // whether it works is known when an operator resumes it
		}
		reasons = append(reasons, topic+" ("+paused[topic]+")")
	}
	if len(reasons) > 0 {
		a.problem = cut("paused: "+strings.Join(reasons, ", ")) + "; they are tried again, and their events wait meanwhile"
	}
	return a
}

// checkOperators names what operators have paused. That is no fault, so the publisher is ready: one that starts
// meanwhile must not look broken.
func (p *probes) checkOperators() answer {
	a := answer{name: "operators", note: "have paused nothing"}
	var pauses []string
	for _, pause := range p.relay.OperatorPauses() {
		pauses = append(pauses, pause.String())
	}
	if len(pauses) > 0 {
		a.note = cut(strings.Join(pauses, "; "))
	}
	return a
}
