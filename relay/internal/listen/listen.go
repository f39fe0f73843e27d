// Package listen waits for the doorbell: it waits for notifications on a connection of its own and says so.
//
// It is about latency alone. Notifications are lost while nobody is connected, and behind a pooler that
// lends connections for a transaction they never arrive: the relay polls whatever happens here.
package listen

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
)

// Channel is what outbox_wake notifies, in every schema of a database. The payload names the schema.
const Channel = "posthaste"

// Listen calls woken for every notification of this schema, and once after every connect, because
// notifications may have been missed before. It returns when ctx ends. A connection that is refused or
// lost is opened again forever; connect sees every attempt and is the place to log and count them.
//
// The connection must lead to the server itself or to a pooler in session mode. It never has a
// transaction open: a listener inside one would keep the server from emptying its queue of
// notifications, and when that is full, commits that notify fail. woken is called from this goroutine
// and must not block.
func Listen(ctx context.Context, connect func(context.Context) (*pgx.Conn, error), schema string, woken func()) {
	l := listener{
		connect: connect, schema: schema, woken: woken,
		quiet: 15 * time.Second, answer: 10 * time.Second, least: 100 * time.Millisecond, most: 10 * time.Second,
	}
	l.run(ctx)
}

type listener struct {
	connect func(context.Context) (*pgx.Conn, error)
	schema  string
	woken   func()

	quiet  time.Duration // after which the peer is asked whether it is there
	answer time.Duration // which a connect, a statement or that question may take
	least  time.Duration // the first wait before a new connection
	most   time.Duration // the longest
}

func (l *listener) run(ctx context.Context) {
	for delay := l.least; ctx.Err() == nil; delay = min(2*delay, l.most) {
		begin := time.Now()
		_ = l.session(ctx) // it ended, and a new one begins, whatever the reason
		if time.Since(begin) > l.most {
			delay = l.least // it worked for a while: this is a new trouble
		}
		jittered := delay/2 + rand.N(delay/2+1)
		select {
		case <-ctx.Done():
		case <-time.After(jittered):
		}
	}
}

// session listens on one connection until it breaks or ctx ends.
func (l *listener) session(ctx context.Context) error {
	conn, err := l.open(ctx)
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing) // a lost connection says so here as well
	}()
	if err := l.send(ctx, conn, "LISTEN "+Channel); err != nil {
		return err
	}
	l.woken()
	for {
		if err := l.next(ctx, conn); err != nil {
			return err
		}
	}
}

func (l *listener) open(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, l.answer)
	defer cancel()
	conn, err := l.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("listen: connect: %w", err)
	}
	return conn, nil
}

// next waits for one notification, or asks the peer whether it is there. A peer that vanished without a
// word would otherwise be waited for until the kernel gives it up, hours later.
func (l *listener) next(ctx context.Context, conn *pgx.Conn) error {
	wait, cancel := context.WithTimeout(ctx, l.quiet)
	defer cancel()
	notification, err := conn.WaitForNotification(wait)
	switch {
	case notification != nil && notification.Channel == Channel && notification.Payload == l.schema:
		l.woken()
		return nil
	case err == nil: // another schema's
		return nil
	case ctx.Err() == nil && wait.Err() != nil && !conn.IsClosed():
		return l.send(ctx, conn, "-- are you there")
	}
	return fmt.Errorf("listen: wait: %w", err)
}

// send sends one statement. It has no arguments, so pgx sends it as one message, outside a transaction.
func (l *listener) send(ctx context.Context, conn *pgx.Conn, statement string) error {
	ctx, cancel := context.WithTimeout(ctx, l.answer)
	defer cancel()
	if _, err := conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("listen: %s: %w", statement, err)
	}
	return nil
}
