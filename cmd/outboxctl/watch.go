package main

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/posthaste-dev/posthaste/relay/operator"
)

// watch looks again and again, until a look says that it was the last one, or fails. Ctrl-C is how it ends otherwise. A
// connection that is lost is made anew.
func (c *rootCommand) watch(ctx context.Context, every time.Duration,
	look func(*operator.Operator) (last bool, err error),
) error {
	pool, err := c.pool(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for told := false; ; {
		last, err := look(operator.New(pool, c.schema))
		switch {
		case ctx.Err() != nil:
			return nil
		case lost(err):
			if !told {
				c.notef("the connection to the database is lost, and made anew: %v", err)
			}
			told = true
		case last || err != nil:
			return c.looked(err)
		default:
			told = false
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// lost tells whether an error is about the connection, or about a server that stops or starts.
func lost(err error) bool {
	if state := sqlState(nil); errors.As(err, &state) {
		return strings.HasPrefix(state.SQLState(), "08") || strings.HasPrefix(state.SQLState(), "57P0")
	}
	var network *net.OpError
	var connecting *pgconn.ConnectError
	return errors.As(err, &network) || errors.As(err, &connecting) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || pgconn.SafeToRetry(err)
}
