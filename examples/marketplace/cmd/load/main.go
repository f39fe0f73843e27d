// Command load drives the API as people would: they place orders, submit licences, upload pictures, run ads. Each of
// its clients lives one story after the other, and together they keep to a rate of requests.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/posthaste-dev/posthaste/examples/marketplace/process"
)

type counts struct{ requests, orders, events, failures atomic.Int64 }

func main() { process.Main("load", run) }

func run(ctx context.Context, logger *slog.Logger) error {
	address := flag.String("api", "http://127.0.0.1:8080", "the address of the API")
	rate := flag.Int("rate", 100, "requests a second")
	duration := flag.Duration("duration", 10*time.Second, "how long, if there are enough events by then")
	events := flag.Int64("events", 1, "how many events are enough")
	clients := flag.Int("clients", 8, "how many stories at a time")
	seed := flag.Uint64("seed", 1, "the same stories for the same number")
	flag.Parse()
	if *rate < 1 || *clients < 1 || *duration <= 0 {
		return errors.New("-rate, -clients and -duration must be more than nothing")
	}
	turns := time.NewTicker(time.Second / time.Duration(*rate))
	defer turns.Stop()

	var counted counts
	group, ctx := errgroup.WithContext(ctx)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group.Go(func() error {
		defer cancel()
		counted.await(ctx, *duration, *events)
		return nil
	})
	for number := range *clients {
		c := &client{
			address: *address, http: &http.Client{Timeout: 15 * time.Second}, turns: turns.C, counts: &counted, logger: logger,
			random: rand.New(rand.NewPCG(*seed, uint64(number))),
		}
		group.Go(func() error { return c.live(ctx) })
	}
	group.Go(func() error { return progress(ctx, &counted) })
	err := group.Wait()
	ok := err == nil && counted.failures.Load() == 0 && counted.events.Load() > 0
	fmt.Printf("load requests=%d orders=%d events=%d errors=%d ok=%t\n",
		counted.requests.Load(), counted.orders.Load(), counted.events.Load(), counted.failures.Load(), ok)
	if err == nil && !ok {
		err = errors.New("some requests failed, or there were none")
	}
	return err
}

// await waits until the time is over and there are enough events, however slow the machine is, or until a request
// fails.
func (c *counts) await(ctx context.Context, duration time.Duration, events int64) {
	end := time.Now().Add(duration)
	every := time.NewTicker(10 * time.Millisecond)
	defer every.Stop()
	for time.Now().Before(end) || c.events.Load() < events && c.failures.Load() == 0 {
		select {
		case <-every.C:
		case <-ctx.Done():
			return
		}
	}
}

// progress tells how it goes, once per second.
func progress(ctx context.Context, counted *counts) error {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			_, err := fmt.Fprintf(os.Stderr, "  %d requests, %d orders, %d events, %d errors\n",
				counted.requests.Load(), counted.orders.Load(), counted.events.Load(), counted.failures.Load())
			if err != nil {
				return fmt.Errorf("progress: %w", err)
			}
		case <-ctx.Done():
			return nil
		}
	}
}
