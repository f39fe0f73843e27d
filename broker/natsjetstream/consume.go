package natsjetstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/internal/wait"
)

const (
	// again is how long the loop waits before it asks a server again that has not answered, or not well.
	again = 2 * time.Second
	// pullExpiry and pullHeartbeat: a pull that the server has forgotten is noticed after two heartbeats.
	pullExpiry, pullHeartbeat = 30 * time.Second, 5 * time.Second
	// goodbye is how long the last acknowledgements may take to reach the server.
	goodbye = 5 * time.Second
)

var errClosed = errors.New("natsjetstream: the connection was closed, and with it the loop: end the context first")

// loop is what one [Consume] knows.
type loop struct {
	js       jetstream.JetStream
	consumer *consumer.Consumer
	config   ConsumeConfig
	log      *slog.Logger
	held     *held
	slots    chan struct{} // one token for each handler that runs
}

// Consume receives messages and has them handled until ctx ends. Then it receives no more, lets the handlers that run
// finish, gives back what it has not begun, and returns nil.
//
// An error is one that waiting does not fix: the configuration, a consumer on the server that would lose messages, or
// a connection that was closed. An outage of the server ends nothing, also at the start.
func Consume(ctx context.Context, js jetstream.JetStream, c *consumer.Consumer, config ConsumeConfig) error {
	config, err := config.withDefaults(js, c)
	if err != nil {
		return err
	}
	l := &loop{
		js: js, consumer: c, config: config,
		log:   c.Logger().With(slog.String("consumer", c.Name()), slog.String("stream", config.Stream)),
		held:  newHeld(heldPerHandler * config.Concurrency),
		slots: make(chan struct{}, config.Concurrency),
	}
	source, err := l.wait(ctx, func(err error) bool { return errors.As(err, new(permanentError)) })
	if err == nil {
		err = l.run(ctx, source)
	}
	return l.why(ctx, err)
}

// why says why a loop has ended, if it was not told to.
func (l *loop) why(ctx context.Context, err error) error {
	switch stopped := ctx.Err(); {
	case stopped == nil && l.js.Conn().IsClosed():
		return errClosed
	case stopped == nil:
		return err
	}
	return nil
}

func (l *loop) run(ctx context.Context, source jetstream.Consumer) error {
	// What is given back while messages are still received would come straight back: so handling stops after receiving,
	// and keeping after handling.
	handling, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	keeping, let := context.WithCancel(context.WithoutCancel(ctx))
	defer let()
	var keepers, lines sync.WaitGroup
	keepers.Go(func() { l.held.keep(keeping) })
	keepers.Go(func() { l.watch(keeping) })
	err := l.receive(ctx, source, func(d *delivery) {
		if l.held.add(d) {
			lines.Go(func() { l.line(handling, d) })
		}
	})
	stop()
	lines.Wait()
	l.flush(keeping)
	let()
	keepers.Wait()
	return err
}

// wait finds the stream's consumer, however long that takes, unless an error is final.
func (l *loop) wait(ctx context.Context, final func(error) bool) (jetstream.Consumer, error) {
	for {
		source, err := l.find(ctx)
		if err == nil {
			l.held.setAckWait(ackWait(source.CachedInfo().Config))
			return source, nil
		}
		if ctx.Err() != nil || l.js.Conn().IsClosed() || final(err) {
			return nil, err
		}
		l.log.WarnContext(ctx, "the server does not answer as it should; asking again",
			slog.String("error", clean.Error(err)))
		_ = wait.For(ctx, again)
	}
}

// find asks once. A question that was lost is asked again, so the answer is not waited for as long as the loop runs.
func (l *loop) find(ctx context.Context) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return find(ctx, l.js, l.config)
}

// receive pulls messages, never more than there is room for, until ctx ends or the connection is closed.
func (l *loop) receive(ctx context.Context, source jetstream.Consumer, take func(*delivery)) error {
	for {
		room := l.held.room(ctx)
		if room == 0 {
			return nil
		}
		err := l.pull(ctx, source, room, take)
		if err == nil {
			continue
		}
		if l.js.Conn().IsClosed() {
			return err
		}
		// The consumer may have been deleted, and may be made again.
		l.log.WarnContext(ctx, "receiving was interrupted; asking again", slog.String("error", clean.Error(err)))
		_ = wait.For(ctx, again)
		if source, err = l.wait(ctx, func(error) bool { return false }); err != nil {
			return err
		}
	}
}

// pull receives so many messages, or fewer when ctx ends: then also those that were on their way.
func (l *loop) pull(ctx context.Context, source jetstream.Consumer, count int, take func(*delivery)) error {
	messages, err := source.Messages(jetstream.StopAfter(count),
		// Room for words of the server's beside the messages.
		jetstream.PullMaxMessages(2*count+16), jetstream.PullExpiry(pullExpiry), jetstream.PullHeartbeat(pullHeartbeat))
	if err != nil {
		return fmt.Errorf("natsjetstream: receive: %w", err)
	}
	defer messages.Stop()
	defer context.AfterFunc(ctx, func() {
		if l.js.Conn().IsConnected() {
			messages.Drain()
		} else {
			messages.Stop() // Drain would wait for the server
		}
	})()
	var silence error
	for {
		message, err := messages.Next()
		switch {
		case err == nil:
			take(newDelivery(message))
		case errors.Is(err, jetstream.ErrNoHeartbeat):
			// It may also be this process that stood still: then messages have come.
			silence = fmt.Errorf("natsjetstream: nothing is heard from the server: %w", err)
			messages.Drain()
		case errors.Is(err, jetstream.ErrMsgIteratorClosed) && !errors.Is(err, jetstream.ErrConnectionClosed):
			return silence
		default:
			return fmt.Errorf("natsjetstream: receive: %w", err)
		}
	}
}

// watch logs what becomes of the connection.
func (l *loop) watch(ctx context.Context) {
	conn := l.js.Conn()
	statuses := conn.StatusChanged(nats.CONNECTED, nats.RECONNECTING)
	defer conn.RemoveStatusListener(statuses)
	for {
		select {
		case status, open := <-statuses:
			if !open {
				return // the connection was closed
			}
			if status == nats.CONNECTED {
				l.log.InfoContext(ctx, "connected again")
			} else {
				l.log.WarnContext(ctx, "the connection is lost: reconnecting")
			}
		case <-ctx.Done():
			return
		}
	}
}

// flush sees the last acknowledgements to the server: the program may end at once.
func (l *loop) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, goodbye)
	defer cancel()
	if err := l.js.Conn().FlushWithContext(ctx); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		l.log.WarnContext(ctx, "the last acknowledgements may not have reached the server: those messages come again",
			slog.String("error", clean.Error(err)))
	}
}
