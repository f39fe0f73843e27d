package bench_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

// In a bubble the clock is exact: two clients of 10 ms make 200 transactions per second.
func TestLoadIsAClosedLoop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int32
		load := bench.Load{
			Clients: 2, Settle: 100 * time.Millisecond,
			Transaction: func(context.Context, *bench.Client) error {
				most.Store(max(most.Load(), running.Add(1)))
				time.Sleep(10 * time.Millisecond) // synctest
				running.Add(-1)
				return nil
			},
		}
		sample, err := load.Measure(t.Context(), bench.Block{Length: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if sample.Transactions < 198 || sample.Transactions > 202 || sample.Elapsed != time.Second {
			t.Errorf("%d transactions in %s", sample.Transactions, sample.Elapsed)
		}
		if bench.Median(sample) != 0.01 || bench.P99(sample) != 0.01 || most.Load() != 2 {
			t.Errorf("median %v, p99 %v, %d at once", bench.Median(sample), bench.P99(sample), most.Load())
		}
	})
}

func TestLoadGivesEverySubjectTheSameNumbers(t *testing.T) {
	t.Parallel()
	draw := func(round int) []uint64 {
		var mu sync.Mutex
		var drawn []uint64
		synctest.Test(t, func(t *testing.T) {
			load := bench.Load{Clients: 2, Transaction: func(_ context.Context, c *bench.Client) error {
				mu.Lock()
				drawn = append(drawn, c.Rand.Uint64())
				mu.Unlock()
				time.Sleep(time.Second) // synctest
				return nil
			}}
			if _, err := load.Measure(t.Context(), bench.Block{Round: round, Length: 3500 * time.Millisecond}); err != nil {
				t.Error(err)
			}
		})
		slices.Sort(drawn)
		return drawn
	}
	first, second, other := draw(0), draw(0), draw(1)
	if !slices.Equal(first, second) {
		t.Error("two blocks of one round drew different numbers")
	}
	if slices.Equal(first, other) || first[0] == first[1] {
		t.Error("rounds and clients must differ")
	}
}

func TestLoadReportsWhatFailed(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	load := bench.Load{Clients: 3, Transaction: func(ctx context.Context, c *bench.Client) error {
		if c.Rand.Uint64()%4 == 0 {
			return broken
		}
		return ctx.Err()
	}}
	if _, err := load.Measure(t.Context(), bench.Block{Length: time.Minute}); !errors.Is(err, broken) {
		t.Errorf("%v, want the transaction's error", err)
	}
	synctest.Test(t, func(t *testing.T) {
		stalls := bench.Load{Clients: 1, AtLeast: 3, Transaction: func(context.Context, *bench.Client) error {
			time.Sleep(900 * time.Millisecond) // synctest
			return nil
		}}
		sample, err := stalls.Measure(t.Context(), bench.Block{Length: time.Second})
		if err != nil || sample.Transactions != 3 || sample.Elapsed != 3*time.Second {
			t.Errorf("%d transactions in %s, %v: the block must last until it has three", sample.Transactions,
				sample.Elapsed, err)
		}
		slow := bench.Load{Clients: 1, Transaction: func(context.Context, *bench.Client) error {
			time.Sleep(time.Hour) // synctest
			return nil
		}}
		if _, err := slow.Measure(t.Context(), bench.Block{Length: time.Second}); err == nil {
			t.Error("a block in which nothing ended passed")
		}
	})
}

func TestCPUOfAddsUpThreads(t *testing.T) {
	t.Parallel()
	self := []int{os.Getpid()}
	before, err := bench.CPUOf(self)
	if err != nil {
		t.Fatal(err)
	}
	whole := bench.ProcessCPU()
	// Until this process has used half a second, on whatever threads it likes.
	var spinning sync.WaitGroup
	for range 2 {
		spinning.Go(func() {
			for bench.ProcessCPU()-whole < 500*time.Millisecond {
				runtime.Gosched()
			}
		})
	}
	spinning.Wait()
	after, err := bench.CPUOf(self)
	if err != nil {
		t.Fatal(err)
	}
	if used := after - before; used < 400*time.Millisecond || used > 5*time.Second {
		t.Errorf("%s of the 500ms that two threads used", used)
	}
	if _, err := bench.CPUOf(append(self, 1<<30)); err == nil {
		t.Error("a process that does not exist was measured")
	}
}

func TestLoadReadsTheServersCPU(t *testing.T) {
	t.Parallel()
	load := bench.Load{
		Clients: 1, AtLeast: 100_000, // which take some time on any machine
		Transaction: func(context.Context, *bench.Client) error { return nil },
		Servers:     func(context.Context) ([]int, error) { return []int{os.Getpid()}, nil },
	}
	sample, err := load.Measure(t.Context(), bench.Block{Length: 20 * time.Millisecond})
	if err != nil || sample.ServerCPU <= 0 || sample.ClientCPU <= 0 {
		t.Errorf("server %s, client %s, %v", sample.ServerCPU, sample.ClientCPU, err)
	}
	load.Servers = func(context.Context) ([]int, error) { return []int{1 << 30}, nil }
	if _, err := load.Measure(t.Context(), bench.Block{Length: time.Millisecond}); err == nil {
		t.Error("a server that does not exist was measured")
	}
}

func TestRoundTripsCountAnswersAndNotPackets(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	var trips bench.RoundTrips
	client, err := trips.Dial(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	send := func(to, from net.Conn, text string) {
		t.Helper()
		if _, err := from.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if _, err := to.Read(make([]byte, 16)); err != nil {
			t.Fatal(err)
		}
	}
	send(client, server, "hello") // unasked: no round trip
	if trips.Count() != 0 {
		t.Errorf("%d round trips before anything was sent", trips.Count())
	}
	send(server, client, "first part")
	send(server, client, "second part")
	send(client, server, "answer")
	send(client, server, "more of it")
	if trips.Count() != 1 {
		t.Errorf("%d round trips, want 1", trips.Count())
	}
	send(server, client, "again")
	send(client, server, "answer")
	if trips.Count() != 2 {
		t.Errorf("%d round trips, want 2", trips.Count())
	}
}

func TestProgressScalesThePlanByThePace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		progress := bench.NewProgress(&said, "bench-x", 100*time.Second)
		time.Sleep(40 * time.Second) // synctest
		progress.Done(20*time.Second, "round 1")
		progress.Done(0, "at once")
		if want := "bench-x: round 1, about 2m40s left\n"; said.String() != want {
			t.Errorf("%q, want %q", said.String(), want)
		}
		progress.Done(200*time.Second, "")
		if left := progress.Left(time.Now()); left != 0 {
			t.Errorf("%s left after the plan was done", left)
		}
	})
}

func TestReport(t *testing.T) {
	t.Parallel()
	table := bench.NewTable("name", "value")
	table.Add("a long name", "1")
	var printed strings.Builder
	if err := table.Print(&printed, "Title"); err != nil {
		t.Fatal(err)
	}
	if want := "\nTitle\nname         value\na long name  1\n"; printed.String() != want {
		t.Errorf("%q, want %q", printed.String(), want)
	}
	var raw strings.Builder
	writer, err := bench.NewRawWriter(&raw)
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Write("latency", []bench.Sample{at(2, 3, "emit", 0.5)}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(raw.String(), "\nlatency,emit,0,2,3,100,0.5000,0,0,0,0\n") {
		t.Error(raw.String())
	}
}
