package bench_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

func TestAlternationGivesSingleTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var order []string
		drawn := map[string][]uint64{}
		single := func(name string, takes time.Duration) bench.Single {
			return bench.Single{Name: name, Transaction: func(_ context.Context, c *bench.Client) error {
				order = append(order, name)
				drawn[name] = append(drawn[name], c.Rand.Uint64())
				time.Sleep(takes) // synctest
				return nil
			}}
		}
		run := bench.Alternation{Rounds: 3, Length: 90 * time.Millisecond}
		samples, err := run.Run(t.Context(), []bench.Single{
			single("a", 10*time.Millisecond), single("b", 20*time.Millisecond),
		})
		if err != nil {
			t.Fatal(err)
		}
		// A palindrome is 60 ms, so a round is two of them, and the next round begins with the other.
		want := []string{"a", "b", "b", "a", "a", "b", "b", "a", "b", "a", "a", "b"}
		if len(order) != 24 || !slices.Equal(order[:len(want)], want) {
			t.Errorf("%v, want it to begin with %v", order, want)
		}
		if !slices.Equal(drawn["a"], drawn["b"]) {
			t.Error("the subjects drew different numbers")
		}
		if len(samples) != 6 || samples[5].Round != 2 || samples[5].Transactions != 4 ||
			samples[5].Elapsed != 80*time.Millisecond {
			t.Errorf("%d samples, the last %+v", len(samples), samples[len(samples)-1])
		}
		ratio, err := bench.Compare(samples, bench.Median, "b", "a")
		if err != nil || ratio.Median != 2 || ratio.Rounds != 3 {
			t.Errorf("%+v, %v, want 2 in three rounds", ratio, err)
		}
	})
}

func TestAlternationInBursts(t *testing.T) {
	t.Parallel()
	var order string
	single := func(name string) bench.Single {
		return bench.Single{Name: name, Transaction: func(context.Context, *bench.Client) error {
			order += name
			return nil
		}}
	}
	run := bench.Alternation{Rounds: 1, AtLeast: 1, Burst: 3}
	if _, err := run.Run(t.Context(), []bench.Single{single("a"), single("b")}); err != nil || order != "aaabbbbbbaaa" {
		t.Errorf("%s, %v", order, err)
	}
}

func TestAlternationLastsUntilItHasEnough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := bench.Single{Name: "slow", Transaction: func(context.Context, *bench.Client) error {
			time.Sleep(time.Second) // synctest
			return nil
		}}
		samples, err := bench.Alternation{
			Rounds: 1, Length: time.Millisecond, AtLeast: 5,
		}.Run(t.Context(), []bench.Single{slow})
		if err != nil || samples[0].Transactions < 5 {
			t.Errorf("%+v, %v", samples, err)
		}
	})
}

func TestAlternationReadsEverySubjectsServers(t *testing.T) {
	t.Parallel()
	nothing := func(context.Context, *bench.Client) error { return nil }
	self := func(context.Context) ([]int, error) { return []int{os.Getpid()}, nil }
	run := bench.Alternation{Rounds: 1, Length: 20 * time.Millisecond}
	samples, err := run.Run(t.Context(), []bench.Single{
		{Name: "seen", Transaction: nothing, Servers: self}, {Name: "unseen", Transaction: nothing},
	})
	if err != nil {
		t.Fatal(err)
	}
	if samples[0].ServerCPU <= 0 || samples[0].ServerCPU > 10*time.Second || samples[1].ServerCPU != 0 {
		t.Errorf("%s of the one with servers, %s of the one without", samples[0].ServerCPU, samples[1].ServerCPU)
	}
	broken := errors.New("broken")
	fails := bench.Single{Name: "x", Transaction: func(context.Context, *bench.Client) error { return broken }}
	if _, err := run.Run(t.Context(), []bench.Single{fails}); !errors.Is(err, broken) {
		t.Errorf("%v, want the transaction's error", err)
	}
}
