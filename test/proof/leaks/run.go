package leaks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/proof/publisher"
)

// Plan is how much proof-leaks does.
type Plan struct {
	// Binary and Outboxctl are the programs as they were built.
	Binary, Outboxctl string
	// Folder takes the logs.
	Folder string
	// Rounds is how often every fault of the chaos happens.
	Rounds int
	// Environment is added to that of the publishers.
	Environment []string
}

// Long is the whole proof.
func Long() Plan { return Plan{Rounds: 4} }

// Short is the form for every change.
func Short() Plan { return Plan{Rounds: 1} }

// run is one under way.
type run struct {
	*env
	plan     Plan
	ledger   *Ledger
	sink     *sink
	report   *Report
	has      features
	programs []*publisher.Program
	askers   []*asker // of each of them
	sayf     func(format string, args ...any)
}

// features are what a program has.
type features struct{ metrics, tracing bool }

// Run plants the canaries, lets chaos loose and searches everything.
func Run(ctx context.Context, plan Plan, say io.Writer) (_ *Report, err error) {
	began := time.Now()
	b := newBirds()
	r := &run{plan: plan, ledger: NewLedger(NewSearcher(b.all()))}
	r.report = &Report{plan: plan, Ledger: r.ledger, Canaries: len(b.all())}
	r.sayf = func(format string, args ...any) {
		// An error here is of no consequence.
		_, _ = fmt.Fprintf(say, "proof-leaks: %5.1f s: %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	if r.env, err = newEnv(ctx, plan.Folder, b); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.env.close()) }()
	if r.sink, err = newSink(r.ledger); err != nil {
		return nil, err
	}
	defer r.sink.close()
	defer func() {
		for _, p := range r.programs {
			p.Kill()
		}
	}()
	for _, part := range []func(context.Context) error{r.install, r.commands, r.otherCredentials, r.chaos, r.end} {
		if err := part(ctx); err != nil {
			return nil, err
		}
	}
	r.report.Seconds = time.Since(began).Seconds()
	return r.report, nil
}

// install makes the outbox with outboxctl, and asks what the publisher can do.
func (r *run) install(ctx context.Context) error {
	root := "POSTHASTE_DATABASE_URL=" + r.database.URL()
	for _, args := range [][]string{{"migrate", "up"}, {"grant", "relay", relayRole}, {"grant", "janitor", relayRole}} {
		if code := r.command(ctx, r.plan.Outboxctl, []string{root}, args...); code != 0 {
			return fmt.Errorf("leaks: outboxctl %s ended with %d", strings.Join(args, " "), code)
		}
	}
	for name, text := range map[string]string{"registry.yaml": registry, "order.json": orderSchema} {
		if _, err := r.file(name, text); err != nil {
			return err
		}
	}
	text, _ := r.output(ctx, r.plan.Binary, nil, "config", "docs")
	r.has = features{
		metrics: strings.Contains(text, "metrics.survey"), tracing: strings.Contains(text, "tracing.endpoint"),
	}
	r.report.has = r.has
	return nil
}

// settings are those of a publisher.
func (r *run) settings(format string) []string {
	b := r.birds
	list := []string{
		"POSTHASTE_DATABASE_URL=" + r.databaseURL(relayRole, b.databasePassword.Text),
		"POSTHASTE_DATABASE_LISTEN_URL=" + r.databaseURL(listenRole, b.listenPassword.Text),
		"POSTHASTE_BROKER=nats", "POSTHASTE_NATS_URL=" + r.natsURL(b.natsPassword.Text),
		"POSTHASTE_REGISTRY_FILE=" + filepath.Join(r.folder, "registry.yaml"),
		"POSTHASTE_HTTP_LISTEN=127.0.0.1:0", "POSTHASTE_LOG_LEVEL=debug", "POSTHASTE_LOG_FORMAT=" + format,
		"POSTHASTE_RELAY_LEASE=3s", "POSTHASTE_RELAY_BASE_DELAY=200ms",
		"HOME=" + r.folder,
	}
	if r.has.tracing {
		list = append(list, "POSTHASTE_TRACING_ENDPOINT="+r.sink.address,
			"POSTHASTE_TRACING_HEADERS=authorization=Bearer "+b.traceKey.Text, "POSTHASTE_TRACING_SAMPLE=1")
	}
	return append(list, r.plan.Environment...)
}

// chaos runs two publishers, one that logs JSON and one that logs text, while everything around them fails.
func (r *run) chaos(ctx context.Context) error {
	for _, format := range []string{"json", "text"} {
		log := filepath.Join(r.folder, "publisher-"+format+".log")
		p, err := publisher.StartProgram(ctx, r.plan.Binary, log, r.settings(format))
		if err != nil {
			return err
		}
		r.programs, r.askers = append(r.programs, p), append(r.askers, &asker{})
		if err := r.control(p.PID()); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	asking, enough := context.WithCancel(ctx)
	var group sync.WaitGroup
	for i, p := range r.programs {
		group.Go(func() { r.fetch(asking, fmt.Sprint(i), p, r.askers[i]) })
	}
	defer func() {
		enough()
		group.Wait()
	}()
	for round := range r.plan.Rounds {
		if err := r.faults(ctx, round); err != nil {
			return err
		}
	}
	return r.flows(ctx)
}

// paths are what is asked of a publisher, well or badly.
var paths = []struct{ method, path string }{
	{http.MethodGet, "/livez"},
	{http.MethodGet, "/readyz"},
	{http.MethodGet, "/readyz?verbose"},
	{http.MethodGet, "/metrics"},
	{http.MethodPost, "/readyz?verbose"},
	{http.MethodGet, "/"},
	{http.MethodGet, "/debug/pprof/"},
	{http.MethodGet, "/debug/vars"},
	{http.MethodGet, "/config"},
	{http.MethodDelete, "/metrics"},
}

// asker is how often a publisher was asked everything, and how often in a row it was not ready then.
type asker struct{ circles, unready atomic.Int64 }

// ask asks a publisher everything, again and again.
func (r *run) fetch(ctx context.Context, name string, p *publisher.Program, count *asker) {
	for {
		for _, what := range paths {
			status, body := p.Fetch(ctx, what.method, what.path)
			if status == 0 {
				continue // it was not the publisher who spoke
			}
			kind := HTTP
			if what.path == "/metrics" && status == http.StatusOK {
				kind = Metrics
			}
			switch {
			case what.path != "/readyz":
			case status == http.StatusServiceUnavailable:
				count.unready.Add(1)
			default:
				count.unready.Store(0)
			}
			r.ledger.Look(kind, fmt.Sprintf("%s %s of publisher %s: %d", what.method, what.path, name, status), []byte(body))
		}
		count.circles.Add(1)
		if wait.For(ctx, 250*time.Millisecond) != nil { // a rest also where the answers take long
			return
		}
	}
}

// control looks at the environment of the process: there the secrets must be, or they are nowhere else for another
// reason.
func (r *run) control(pid int) error {
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return fmt.Errorf("leaks: %w", err)
	}
	arguments, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return fmt.Errorf("leaks: %w", err)
	}
	r.ledger.Look(Command, "a publisher's command line", arguments)
	secrets := []Canary{r.birds.databasePassword, r.birds.listenPassword, r.birds.natsPassword}
	if r.has.tracing {
		secrets = append(secrets, r.birds.traceKey)
	}
	for _, secret := range secrets {
		if len(NewSearcher([]Canary{secret}).Search("", environment)) == 0 {
			r.report.Missing = append(r.report.Missing, secret.Name)
		}
	}
	return nil
}

// end lets operators decide about what is left, stops the publishers and looks at everything that stayed.
func (r *run) end(ctx context.Context) error {
	err := eventually.Within(ctx, eventually.Patience, "good events are published and bad ones dead",
		func() (bool, error) {
			var open, dead int
			var which *string
			const query = `SELECT count(*), (SELECT count(*) FROM outbox_dlq), 
			string_agg(DISTINCT format('%s in state %s, last %s', event_type, state, last_error), '; ')
			FROM outbox_status WHERE state < 4 AND tenant_id IS NOT NULL` // which only good ones have
			if err := r.pool.QueryRow(ctx, query).Scan(&open, &dead, &which); err != nil {
				return false, fmt.Errorf("leaks: %w", err)
			}
			if open > 0 {
				return false, fmt.Errorf("leaks: %d good events are open: %s", open, *which)
			}
			return dead >= r.report.letters(), nil
		})
	if err != nil {
		return err
	}
	if err := r.operate(ctx); err != nil {
		return err
	}
	if err := r.columns(ctx); err != nil {
		return err
	}
	for _, p := range r.programs {
		if _, err := p.Stop(eventually.Patience); err != nil {
			return err
		}
		if code := p.ExitCode(); code != 0 {
			r.report.Broken = append(r.report.Broken, fmt.Sprintf("a publisher ended with exit code %d", code))
		}
		if err := r.logOf(p.Log); err != nil {
			return err
		}
	}
	return r.counts(ctx)
}

func (r *run) logOf(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("leaks: %w", err)
	}
	r.ledger.Look(Log, filepath.Base(file), text)
	return nil
}

// operate redrives and discards dead events, so that there are audit rows, and errors of a second try.
func (r *run) operate(ctx context.Context) error {
	op := operator.New(r.pool, outbox.DefaultSchema)
	rows, err := r.pool.Query(ctx, "SELECT id FROM outbox_status WHERE state IN (4, 5) ORDER BY seq LIMIT 60")
	if err != nil {
		return fmt.Errorf("leaks: %w", err)
	}
	var dead []outbox.ID
	for rows.Next() {
		var id outbox.ID
		if err := rows.Scan(&id); err != nil {
			return fmt.Errorf("leaks: %w", err)
		}
		dead = append(dead, id)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("leaks: %w", err)
	}
	if len(dead) < 10 {
		r.report.Broken = append(r.report.Broken, fmt.Sprintf("too little was tested: %d events are dead", len(dead)))
		return nil
	}
	action := func(reason string) operator.Action {
		return operator.Action{ID: outbox.NewID(), Actor: "proof", Reason: reason}
	}
	if _, err := op.Redrive(ctx, action("fixed"), dead[:len(dead)/2]...); err != nil {
		return fmt.Errorf("leaks: %w", err)
	}
	if _, err := op.Discard(ctx, action("not wanted"), dead[len(dead)/2:]...); err != nil {
		return fmt.Errorf("leaks: %w", err)
	}
	return nil
}

// emitted are the columns that hold the event itself, and only that.
var emitted = []string{"payload_json", "headers", "tenant_id", "dedupe_key"}

// columns looks at all tables of the outbox.
func (r *run) columns(ctx context.Context) error {
	r.pool.Reset()
	rows, err := r.pool.Query(ctx, `SELECT table_name::text, column_name::text FROM information_schema.columns
		WHERE table_schema = 'public' AND table_name LIKE 'outbox%' ORDER BY 1, 2`)
	if err != nil {
		return fmt.Errorf("leaks: %w", err)
	}
	type column struct{ table, name string }
	var list []column
	for rows.Next() {
		var c column
		if err := rows.Scan(&c.table, &c.name); err != nil {
			return fmt.Errorf("leaks: %w", err)
		}
		list = append(list, c)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("leaks: %w", err)
	}
	for _, c := range list {
		var text *string
		query := fmt.Sprintf("SELECT string_agg(%[1]s::text, E'\\n') FROM (SELECT DISTINCT %[1]s::text FROM %[2]s WHERE "+
			"%[1]s IS NOT NULL) d (%[1]s)", c.name, c.table)
		if err := r.pool.QueryRow(ctx, query).Scan(&text); err != nil {
			return fmt.Errorf("leaks: %s.%s: %w", c.table, c.name, err)
		}
		switch {
		case text == nil:
		case slices.Contains(emitted, c.name):
			r.report.Stored += *text + "\n"
		default:
			r.ledger.Look(Column, c.table+"."+c.name, []byte(*text))
			if c.name == "error" && c.table == "outbox_topics" && strings.TrimSpace(*text) != "" {
				r.report.TopicErrors++
			}
		}
	}
	return nil
}

// counts tells what there must have been to search in, and that the personal data were really there.
func (r *run) counts(ctx context.Context) error {
	for query, to := range map[string]*int{
		"SELECT count(*) FROM outbox_events WHERE last_error <> ''": &r.report.LastErrors,
		"SELECT count(*) FROM outbox_dlq WHERE error_detail <> ''":  &r.report.Letters,
		"SELECT count(*) FROM outbox_actions":                       &r.report.Actions,
		"SELECT count(*) FROM outbox_events":                        &r.report.Events,
	} {
		if err := r.pool.QueryRow(ctx, query).Scan(to); err != nil {
			return fmt.Errorf("leaks: %w", err)
		}
	}
	for _, c := range r.birds.personal() {
		if len(NewSearcher([]Canary{c}).Search("", []byte(r.report.Stored))) == 0 {
			r.report.Missing = append(r.report.Missing, c.Name)
		}
	}
	return nil
}
