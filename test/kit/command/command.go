// Package command is the main function that proofs and benchmarks share.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Main runs a command until it ends or is interrupted, and returns what to exit with: 0 when all is well, 1 when
// something was found, and 2 when it could not run.
func Main(name string, run func(ctx context.Context, args []string) (ok bool, err error)) (status int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ok, err := run(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 2
	case !ok:
		return 1
	}
	return 0
}
