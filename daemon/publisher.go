package daemon

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/relay/operator"
	"github.com/posthaste-dev/posthaste/relay/retention"
)

// ownConnections are the program's own to the database, for retention, jobs and the probes.
const ownConnections = 3

// publisher is a program that was configured.
type publisher struct {
	*loaded
	program     Program
	logger      *slog.Logger
	database    *pgxpool.Pool
	connections connections
	endTracing  []func()

	credentials, listenCredentials *credentials

	relay     *relay.Relay
	retention *retention.Runner // nil: off
	jobs      *operator.Worker
}

// open makes everything that runs. Nothing of it waits for a server.
func (p *publisher) open(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if err := p.openDatabase(ctx); err != nil {
		return err
	}
	p.connections = connections{}
	if err := p.connections.open(ctx, p.loaded, p.program, p.logger); err != nil {
		return err
	}
	every := logSample.Get(p.values)
	settings := relay.Config{
		Settings: relaySettings(p.values), Database: databaseURL.Get(p.values).Reveal(),
		ListenDatabase: databaseListenURL.Get(p.values).Reveal(),
		BeforeConnect:  p.beforeConnect, Installation: databaseInstallation.Get(p.values),
		Schema: databaseSchema.Get(p.values), Registry: p.registry,
		Name:    relayName.Get(p.values),
		Version: p.program.Version, Logger: p.logger, LogPublished: every > 0, SamplePublished: every,
	}
	setFormats(p.values, &settings)
	if settings.Publisher, settings.Publishers, err = p.publishers(ctx); err != nil {
		return err
	}
	if p.program.Metrics != nil {
		settings.SurveyEvery = metricsSurvey.Get(p.values)
		p.program.Metrics.Configure(&settings)
	}
	if p.relay, err = relay.New(settings); err != nil {
		return err
	}
	if p.program.running != nil {
		p.program.running.Store(p.relay)
	}
	if p.program.Metrics != nil {
		p.program.Metrics.Watch(p.relay)
	}
	p.jobs = operator.New(p.database, databaseSchema.Get(p.values)).NewWorker(relayName.Get(p.values), p.logger)
	return p.prepareRetention()
}

// topics are those of the registry.
func (l *loaded) topics() []string {
	var all []string
	for _, eventType := range l.registry.Types() {
		if contract, known := l.registry.Contract(eventType); known {
			all = append(all, contract.Topic)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// prepareRetention leaves it out where somebody else shall do it, for instance `outboxctl prune`.
func (p *publisher) prepareRetention() (err error) {
	if retentionEvery.Get(p.values) > 0 {
		settings := retentionConfig(p.values)
		settings.Logger = p.logger
		p.retention, err = retention.New(p.database, settings)
	}
	return err
}

func (p *publisher) openDatabase(ctx context.Context) error {
	if err := p.openCredentials(); err != nil {
		return err
	}
	// an error of the client may quote it
	unusable := errors.New("database.url: not a URL that PostgreSQL clients understand")
	settings, err := pgxpool.ParseConfig(databaseURL.Get(p.values).Reveal())
	if err != nil {
		return unusable
	}
	settings.BeforeConnect = p.beforeConnect
	settings.MaxConns = ownConnections
	if settings.ConnConfig.RuntimeParams["application_name"] == "" {
		settings.ConnConfig.RuntimeParams["application_name"] = "posthaste publisher"
	}
	if p.database, err = pgxpool.NewWithConfig(context.WithoutCancel(ctx), settings); err != nil {
		return unusable
	}
	return nil
}

func (p *publisher) close() (err error) {
	for _, end := range p.endTracing {
		end()
	}
	err = p.connections.close()
	if p.database != nil {
		p.database.Close()
	}
	return err
}

// run publishes until ctx ends and what was in flight is settled.
func (p *publisher) run(ctx context.Context) error {
	probes := &probes{publisher: p, stopping: ctx.Done(), stuckAfter: relayLease.Get(p.values) + 30*time.Second}
	server, err := p.serve(ctx, probes)
	if err != nil {
		return errors.Join(err, p.close())
	}
	console, err := p.openConsole(ctx)
	if err != nil {
		server.close() //nolint:contextcheck // nobody reads an answer yet
		return errors.Join(err, p.close())
	}
	p.sayHello(ctx)
	working, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { p.answerHangups(working) })
	if p.retention != nil {
		running.Go(func() { _ = p.retention.Run(working) }) // it logs what fails, and returns nothing else
	}
	running.Go(func() { p.jobs.Run(working) })
	running.Go(func() { console(working) })
	err = p.relay.Run(ctx)
	stop()
	running.Wait()
	err = errors.Join(err, p.close())
	server.close() //nolint:contextcheck // ctx has ended
	return err
}

// sayHello logs what runs where, so that a wrong database or registry is seen.
func (p *publisher) sayHello(ctx context.Context) {
	attributes := []slog.Attr{
		slog.String("program", p.program.Name), slog.String("version", p.program.Version),
		slog.Any("database", databaseURL.Get(p.values)), slog.String("schema", databaseSchema.Get(p.values)),
		slog.String("broker", p.brokersText()), slog.Int("event_types", len(p.registry.Types())),
	}
	if p.file != nil {
		attributes = append(attributes, slog.String("registry", p.file.Files[0]),
			slog.String("registry_sha256", p.file.SHA256))
	}
	p.logger.LogAttrs(ctx, slog.LevelInfo, "the publisher starts", attributes...)
	for _, name := range InsecureAllow.Get(p.values) {
		p.logger.WarnContext(ctx, "insecure.allow: events and passwords may go over a network in plain text",
			slog.String("name", name))
	}
	p.warnOfReadable(ctx)
}

// Run loads the configuration from arguments (without the program's name) and an environment, publishes until ctx
// ends and what was in flight is settled, and returns nil. The log goes to the writer. An error is a *[config.Error],
// or something that a restart would not repair.
func (p Program) Run(ctx context.Context, args, environ []string, log io.Writer) error {
	p = p.withDefaults()
	found, err := p.load(args, environ)
	if err != nil {
		return err
	}
	return p.runLoaded(ctx, found, log)
}

// runLoaded runs a program whose configuration was accepted.
func (p Program) runLoaded(ctx context.Context, found *loaded, log io.Writer) error {
	terminal := isTerminal(log)
	handler := func(to io.Writer) slog.Handler { return newHandler(found.values, to, terminal) }
	queue := newLines(log, handler) //nolint:contextcheck // it writes also when ctx has ended
	defer queue.close(time.Second)
	running := &publisher{loaded: found, program: p, logger: slog.New(handler(queue))}
	if err := running.open(ctx); err != nil {
		return running.failed(ctx, err)
	}
	said := make(chan struct{})
	untold := context.AfterFunc(ctx, func() {
		defer close(said)
		running.logger.InfoContext(ctx, "draining: what is in flight is settled and the lanes are given back",
			slog.Duration("at_most", relayDrain.Get(found.values)))
	})
	err := running.run(ctx)
	if !untold() {
		<-said
	}
	if err != nil {
		return running.failed(ctx, err)
	}
	running.logger.InfoContext(ctx, "the publisher has stopped")
	return nil
}

// loggedError is one that the log has already.
type loggedError struct{ err error }

func (e *loggedError) Error() string { return e.err.Error() }
func (e *loggedError) Unwrap() error { return e.err }

func (p *publisher) failed(ctx context.Context, err error) error {
	p.logger.ErrorContext(ctx, "the publisher has stopped", slog.String("error", err.Error()))
	return &loggedError{err}
}

// isConfiguration tells errors of the configuration from others.
func isConfiguration(err error) bool {
	invalid := (*config.Error)(nil)
	return errors.As(err, &invalid)
}
