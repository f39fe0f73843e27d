// Command proof-model runs random sequences of actions against the store in memory and PostgreSQL, and
// fails at the first difference. A difference is printed with its seed; -seed N -sequences 1 replays it.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/posthaste-dev/posthaste/relay/internal/modeltest"
	"github.com/posthaste-dev/posthaste/relay/internal/sim"
)

func main() {
	proof := modeltest.Proof{}
	flag.IntVar(&proof.Sequences, "sequences", 0,
		"how many sequences to run, each from a clean state (default 500, or 60 with -short)")
	flag.IntVar(&proof.Actions, "actions", 60, "how many actions a sequence has")
	flag.Uint64Var(&proof.Seed, "seed", 0,
		"the seed of the first sequence; the next ones count up (default one of the day, or 1 with -short)")
	short := flag.Bool("short", false, "the form for every change")
	url := flag.String("url", modeltest.DefaultURL(), "a PostgreSQL, as superuser")
	flag.Parse()
	sequences, seed := 500, sim.SeedsOf(time.Now())[0]
	if *short {
		sequences, seed = 60, 1
	}
	proof.Sequences, proof.Seed = cmp.Or(proof.Sequences, sequences), cmp.Or(proof.Seed, seed)
	ok, err := run(context.Background(), os.Stdout, proof, *url)
	if err != nil {
		fmt.Fprintln(os.Stderr, "proof-model:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, proof modeltest.Proof, url string) (ok bool, err error) {
	db, err := modeltest.Open(ctx, url)
	if err != nil {
		return false, err
	}
	defer func() {
		if closed := db.Close(ctx); err == nil {
			err = closed
		}
	}()
	fmt.Fprintf(out, "seed %d\n", proof.Seed)
	report, err := proof.Run(ctx, db)
	if err != nil {
		return false, err
	}
	if report.Mismatch != "" {
		fmt.Fprintln(out, report.Mismatch)
	}
	for _, missing := range report.TooLittle() {
		fmt.Fprintln(out, "too little:", missing)
	}
	fmt.Fprintln(out, report.Line())
	return report.Mismatch == "" && len(report.TooLittle()) == 0, nil
}
