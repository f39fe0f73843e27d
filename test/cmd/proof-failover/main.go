// Command proof-failover proves what happens to events when PostgreSQL crashes, fails over, hangs on a standby or is
// restored: it starts clusters of its own and does all of that to them under load. It ends with one line of
// name=value figures.
//
// It fails when something was lost, invented or left behind that must not be, and when too little was tested. Then
// the histories are kept, and the command says where.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/posthaste-dev/posthaste/test/command"
	"github.com/posthaste-dev/posthaste/test/failover"
	"github.com/posthaste-dev/posthaste/torture"
)

func main() { os.Exit(command.Main("proof-failover", prove)) }

// limit is far more than the proof takes.
const limit = 10 * time.Minute

func prove(ctx context.Context, args []string) (ok bool, err error) {
	// The proof starts itself once for every life of a relay.
	if len(args) == 2 && args[0] == "relay" {
		return true, torture.Live(ctx, args[1], torture.Relay)
	}
	flags := flag.NewFlagSet("proof-failover", flag.ContinueOnError)
	short := flags.Bool("short", false, "fewer events and crashes")
	seed := flags.Uint64("seed", 0, "what producers and storms draw from; the timing is the machine's. Defaults to 1 for the short form, and to another every time")
	keep := flags.Bool("keep", false, "keep the histories also when all is well")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	if *seed == 0 {
		if *seed = 1; !*short {
			*seed = uint64(time.Now().UnixNano())
		}
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	proof := &failover.Proof{Short: *short, Seed: *seed, Say: os.Stderr, Broker: "nats://127.0.0.1:14222"}
	if at := os.Getenv("POSTHASTE_NATS_URL"); at != "" {
		proof.Broker = at
	}
	if proof.Executable, err = os.Executable(); err != nil {
		return false, fmt.Errorf("which program this is: %w", err)
	}
	if proof.Folder, err = os.MkdirTemp("", "proof-failover-"); err != nil {
		return false, fmt.Errorf("a folder for the histories: %w", err)
	}
	fmt.Fprintf(os.Stderr, "proof-failover: seed %d, histories in %s\n", proof.Seed, proof.Folder)
	proof.Planted = func(ctx context.Context) (string, error) { return build(ctx, proof.Folder) }
	result, err := proof.Run(ctx)
	if err != nil {
		return false, err
	}
	ok = len(result.Problems()) == 0
	if ok && !*keep {
		if err := os.RemoveAll(proof.Folder); err != nil {
			return false, fmt.Errorf("remove the histories: %w", err)
		}
	} else {
		fmt.Printf("the histories are in %s\n", proof.Folder)
	}
	return ok, result.Print(os.Stdout)
}

// build makes this program once more, with mistakes that it can be told to make.
func build(ctx context.Context, folder string) (string, error) {
	program := filepath.Join(folder, "planted")
	command := exec.CommandContext(ctx, "go", "build", "-tags", "planted", "-o", program, "github.com/posthaste-dev/posthaste/test/cmd/proof-failover")
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the control: %w: %s", err, output)
	}
	return program, nil
}
