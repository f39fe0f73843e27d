package natsjetstream

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/publish"
)

// Publisher publishes to the streams of one connection.
type Publisher struct {
	conn   *nats.Conn
	stream jetstream.JetStream
	config PublisherConfig
	room   chan struct{} // one token for each message that waits for its acknowledgement

	mu       sync.Mutex
	closed   bool
	inFlight sync.WaitGroup
	// waiting has a channel for each publish that waits, by subject: the server tells of a missing
	// permission beside the publish, and names only the subject.
	waiting map[string]map[chan error]struct{}
}

var _ publish.Publisher = (*Publisher)(nil)

// NewPublisher makes a publisher on a connection, as [Connect] makes it or with options of the caller's own. The
// connection is the publisher's from then on: Close closes it, and its error handler is extended.
func NewPublisher(conn *nats.Conn, config PublisherConfig) (*Publisher, error) {
	if conn == nil {
		return nil, errors.New("natsjetstream: a connection is needed; see Connect")
	}
	if err := config.validate(); err != nil {
		return nil, err
	}
	if conn.Opts.ReconnectBufSize >= 0 {
		return nil, errors.New("natsjetstream: the connection keeps messages while it is disconnected and would send them " +
			"later, " +
			"out of order: connect with nats.ReconnectBufSize(-1), or with natsjetstream.Connect")
	}
	config = config.withDefaults()
	stream, err := jetstream.New(conn,
		jetstream.WithPublishAsyncTimeout(config.AckTimeout),
		// Room is ours to give: the client fails a publish that does not get it within 200 ms, and counts
		// what was given up until AckTimeout.
		jetstream.WithPublishAsyncMaxPending(1<<30))
	if err != nil {
		return nil, fmt.Errorf("natsjetstream: %w", err)
	}
	p := &Publisher{
		conn: conn, stream: stream, config: config,
		room: make(chan struct{}, config.MaxPending), waiting: map[string]map[chan error]struct{}{},
	}
	before := conn.ErrorHandler()
	conn.SetErrorHandler(func(conn *nats.Conn, subscription *nats.Subscription, err error) {
		p.noticed(err)
		if before != nil {
			before(conn, subscription, err)
		}
	})
	return p, nil
}

// messageID is by what the stream knows a message that it has. A copy that somebody asked for is another one.
func messageID(message *publish.Message) string {
	if message.Request == 0 {
		return message.ID.String()
	}
	return message.ID.String() + "/" + strconv.FormatInt(message.Request, 10)
}

// Publish sends a message and waits for the stream's acknowledgement. A message that the stream has
// already counts as published.
func (p *Publisher) Publish(ctx context.Context, message *publish.Message) error {
	subject := p.config.Subject(message)
	if err := CheckSubject(subject); err != nil {
		return &publish.TopicError{Err: fmt.Errorf("topic %q makes the subject %q: %w", message.Topic, subject, err)}
	}
	header, err := encodeHeader(message.Attributes)
	if err != nil {
		return &publish.TerminalError{Reason: publish.ReasonRejected, Err: err}
	}
	header[jetstream.MsgIDHeader] = []string{messageID(message)}
	if stream := p.config.stream(message.Topic); stream != "" {
		header[jetstream.ExpectedStreamHeader] = []string{stream}
	}
	if err := p.begin(); err != nil {
		return err
	}
	defer p.inFlight.Done()
	select {
	case p.room <- struct{}{}:
		defer func() { <-p.room }()
	case <-ctx.Done():
		return fmt.Errorf("waiting for room among %d unacknowledged messages: %w: %w", p.config.MaxPending, ctx.Err(),
			publish.ErrNotSent)
	}
	err = p.send(ctx, &nats.Msg{Subject: subject, Header: header, Data: message.Body})
	return naming(err, subject, p.config.stream(message.Topic))
}

// begin counts a publish in, unless the publisher is closed.
func (p *Publisher) begin() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return &publish.TopicError{Err: errors.New("the publisher is closed")}
	}
	p.inFlight.Add(1)
	return nil
}

func (p *Publisher) send(ctx context.Context, message *nats.Msg) error {
	if err := ctx.Err(); err != nil {
		return beforeSending(err)
	}
	denied := p.listen(message.Subject)
	defer p.forget(message.Subject, denied)
	// No attempts of the client's own: it would send the message when nobody waits for it any more.
	future, err := p.stream.PublishMsgAsync(message, jetstream.WithRetryAttempts(0))
	if err != nil && !p.conn.IsConnected() {
		// The client says what it misses first, for instance headers, because it knows of no server.
		return &publish.TopicError{Err: errors.New("not connected to a server")}
	}
	if err != nil {
		return beforeSending(err)
	}
	select {
	case <-future.Ok():
		return nil
	case err := <-future.Err():
		return afterSending(err)
	case err := <-denied:
		return afterSending(err)
	case <-ctx.Done():
		return fmt.Errorf("waiting for the stream's acknowledgement: %w", ctx.Err())
	}
}

func (p *Publisher) listen(subject string) chan error {
	denied := make(chan error, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting[subject] == nil {
		p.waiting[subject] = map[chan error]struct{}{}
	}
	p.waiting[subject][denied] = struct{}{}
	return denied
}

func (p *Publisher) forget(subject string, denied chan error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting[subject], denied)
	if len(p.waiting[subject]) == 0 {
		delete(p.waiting, subject)
	}
}

// violation finds the subject in the server's sentence about a missing permission: it is nowhere else.
var violation = regexp.MustCompile(`(?i)permissions violation for publish to "([^"]+)"`)

// noticed hears of errors that the connection reports beside the calls.
func (p *Publisher) noticed(err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	found := violation.FindStringSubmatch(err.Error())
	if found == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for denied := range p.waiting[found[1]] {
		select {
		case denied <- err:
		default: // it has been told
		}
	}
}

// Close waits for what is in flight, each until its own deadline, and closes the connection.
func (p *Publisher) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.inFlight.Wait()
	p.stream.CleanupPublisher()
	p.conn.Close()
	return nil
}
