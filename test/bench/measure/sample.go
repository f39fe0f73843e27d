package bench

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// A Sample is what one block measured.
type Sample struct {
	Block
	Clients      int
	Transactions int
	Elapsed      time.Duration
	// Latencies of the transactions, sorted.
	Latencies []time.Duration
	// ServerCPU is what the server's processes for these clients used; zero where it cannot be seen.
	ServerCPU time.Duration
	// ClientCPU is what this process used.
	ClientCPU time.Duration
}

// A Metric reads one figure of a sample.
type Metric func(Sample) float64

// Median is the median latency, in seconds.
func Median(s Sample) float64 { return s.Latency(0.5).Seconds() }

// P99 is the 99th percentile of the latency, in seconds.
func P99(s Sample) float64 { return s.Latency(0.99).Seconds() }

// Throughput is the number of transactions per second.
func Throughput(s Sample) float64 { return float64(s.Transactions) / s.Elapsed.Seconds() }

// ServerCPU is the server's CPU-seconds for 1,000 transactions.
func ServerCPU(s Sample) float64 { return 1000 * s.ServerCPU.Seconds() / float64(s.Transactions) }

// TotalCPU is the CPU-seconds of server and clients for 1,000 transactions. With both on one machine it
// is what bounds the throughput.
func TotalCPU(s Sample) float64 {
	return 1000 * (s.ServerCPU + s.ClientCPU).Seconds() / float64(s.Transactions)
}

// Latency is a quantile of the latencies; zero when there are none.
func (s Sample) Latency(q float64) time.Duration {
	if len(s.Latencies) == 0 {
		return 0
	}
	return s.Latencies[int(q*float64(len(s.Latencies)-1))]
}

// A RawWriter writes every sample as a line of CSV, so that others can check the arithmetic.
type RawWriter struct {
	csv *csv.Writer
}

// NewRawWriter writes the heading.
func NewRawWriter(to io.Writer) (*RawWriter, error) {
	w := &RawWriter{csv: csv.NewWriter(to)}
	return w, w.write([]string{
		"phase", "subject", "clients", "round", "position", "transactions", "seconds",
		"p50_us", "p99_us", "server_cpu_us", "client_cpu_us",
	})
}

// Write adds the samples of one phase.
func (w *RawWriter) Write(phase string, samples []Sample) error {
	for _, s := range samples {
		err := w.write([]string{
			phase, s.Subject, strconv.Itoa(s.Clients), strconv.Itoa(s.Round), strconv.Itoa(s.Position),
			strconv.Itoa(s.Transactions), strconv.FormatFloat(s.Elapsed.Seconds(), 'f', 4, 64),
			micros(s.Latency(0.5)), micros(s.Latency(0.99)), micros(s.ServerCPU), micros(s.ClientCPU),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *RawWriter) write(line []string) error {
	if err := w.csv.Write(line); err != nil {
		return fmt.Errorf("bench: csv: %w", err)
	}
	w.csv.Flush()
	return w.csv.Error()
}

func micros(d time.Duration) string { return strconv.FormatInt(d.Microseconds(), 10) }

// sorted returns the latencies of all clients in one sorted slice.
func sorted(parts [][]time.Duration) []time.Duration {
	all := slices.Concat(parts...)
	slices.Sort(all)
	return all
}
