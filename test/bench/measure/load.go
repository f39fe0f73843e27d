package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/posthaste-dev/posthaste/internal/wait"
)

// A Client is one of the concurrent users of a closed loop.
type Client struct {
	// Rand gives the same numbers to every subject in the same round, so that all do the same work.
	Rand *rand.Rand
}

// A Load is a closed loop: every client begins its next transaction when the last one ended.
type Load struct {
	Clients int
	// Settle is how long the load runs before it is measured, in every block.
	Settle time.Duration
	// AtLeast is how many transactions a block must have measured; it lasts longer when the machine stalls, until
	// that looks like a load that hangs. Defaults to 1.
	AtLeast int
	// Transaction does one unit of work. Its whole time is the latency.
	Transaction func(context.Context, *Client) error
	// Servers, when set, lists the processes whose CPU time is the server's part.
	Servers func(context.Context) ([]int, error)
}

// Measure runs the load for one block.
func (l Load) Measure(ctx context.Context, block Block) (Sample, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		state     loadState
		clients   sync.WaitGroup
		latencies = make([][]time.Duration, l.Clients)
	)
	for i := range l.Clients {
		client := &Client{Rand: rand.New(rand.NewPCG(uint64(block.Round), uint64(i)))}
		clients.Go(func() {
			for !state.stop.Load() {
				began := time.Now()
				if err := l.Transaction(ctx, client); err != nil {
					cancel(err)
					return
				}
				// Counted where it ends inside the window: one that began before is balanced by one that ends after.
				if state.measuring.Load() {
					latencies[i] = append(latencies[i], time.Since(began))
					state.measured.Add(1)
				}
			}
		})
	}
	sample, err := l.window(ctx, block.Length, &state)
	state.stop.Store(true)
	clients.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return Sample{}, cause
	}
	if err != nil {
		return Sample{}, err
	}
	sample.Latencies = sorted(latencies)
	sample.Transactions = len(sample.Latencies)
	if sample.Transactions < max(l.AtLeast, 1) {
		return Sample{}, fmt.Errorf("bench: only %d transactions ended within %s", sample.Transactions, sample.Elapsed)
	}
	return sample, nil
}

// hung is how long a block may last that has not measured enough.
const hung = 2 * time.Minute

// loadState is what the clients and the window share.
type loadState struct {
	measuring, stop atomic.Bool
	measured        atomic.Int64
}

// window lets the load settle, opens the measuring window, and closes it.
func (l Load) window(ctx context.Context, length time.Duration, state *loadState) (Sample, error) {
	sample := Sample{Clients: l.Clients}
	if err := wait.For(ctx, l.Settle); err != nil {
		return sample, err
	}
	servers, err := l.servers(ctx)
	if err != nil {
		return sample, err
	}
	serverBefore, err := CPUOf(servers)
	if err != nil {
		return sample, err
	}
	clientBefore := ProcessCPU()
	began := time.Now()
	state.measuring.Store(true)
	for {
		err = wait.For(ctx, length)
		if err != nil || state.measured.Load() >= int64(max(l.AtLeast, 1)) || time.Since(began) > hung {
			break
		}
	}
	state.measuring.Store(false)
	sample.Elapsed = time.Since(began)
	sample.ClientCPU = ProcessCPU() - clientBefore
	if err != nil {
		return sample, err
	}
	serverAfter, err := CPUOf(servers)
	sample.ServerCPU = serverAfter - serverBefore
	return sample, err
}

func (l Load) servers(ctx context.Context) ([]int, error) {
	if l.Servers == nil {
		return nil, nil
	}
	return l.Servers(ctx)
}
