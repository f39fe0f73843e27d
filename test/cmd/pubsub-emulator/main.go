// Command pubsub-emulator runs a Google Pub/Sub emulator that survives kill -9 and can be told to
// misbehave. See package pubsubemulator for what it promises.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
)

const usage = `pubsub-emulator runs a Google Pub/Sub emulator on loopback. Every accepted message is a line in
DIR/messages.jsonl before its publisher is answered, and a restart in the same DIR loses nothing.

  pubsub-emulator -dir DIR [-addr 127.0.0.1:18085] [-fault-addr 127.0.0.1:18086] [-fsync]

Flags:
`

const faultUsage = `
Faults. POST adds one, PUT makes it the only one. "method" defaults to Publish, "topic" to all topics,
"every":3 spares two calls of three, "count":5 ends the fault after five; without it, it stays.

  Answer two publishes with an error:
    curl -d '{"kind":"error","code":"UNAVAILABLE","count":2}' http://127.0.0.1:18086/faults
  Hold back every publish to one topic by half a second:
    curl -d '{"kind":"delay","ms":500,"topic":"projects/p/topics/orders"}' http://127.0.0.1:18086/faults
  Accept every tenth publish, then cut the connection instead of answering:
    curl -d '{"kind":"drop_answer","mode":"reset","every":10}' http://127.0.0.1:18086/faults
  Accept one publish and let its publisher wait until its deadline:
    curl -d '{"kind":"drop_answer","mode":"hang","count":1}' http://127.0.0.1:18086/faults
  Let a publisher wait until its deadline, and accept the message two seconds later; or when it is released:
    curl -d '{"kind":"late","ms":2000,"count":1}' http://127.0.0.1:18086/faults
    curl -d '{"kind":"late","count":1}' http://127.0.0.1:18086/faults
    curl -X POST http://127.0.0.1:18086/release
  Answer publishes of one ordering key, or of one message, with an error that says when to come again:
    curl -d '{"kind":"error","code":"ABORTED","key":"order-7","retry_after_ms":500}' http://127.0.0.1:18086/faults
    curl -d '{"kind":"error","code":"INTERNAL","attribute":"event-id=17"}' http://127.0.0.1:18086/faults
  Give every call the latency of a network; make each fourth connection silent; break a stream behind ten messages:
    curl -d '{"kind":"delay","method":"*","ms":30}' http://127.0.0.1:18086/faults
    curl -d '{"kind":"black_hole","method":"*","every_connection":4}' http://127.0.0.1:18086/faults
    curl -d '{"kind":"error","code":"UNAVAILABLE","method":"StreamingPull","after_messages":10}' \
      http://127.0.0.1:18086/faults
  List and remove the faults; look at the counters:
    curl http://127.0.0.1:18086/faults
    curl -X DELETE http://127.0.0.1:18086/faults
    curl http://127.0.0.1:18086/stats
`

func main() {
	// A second signal ends the process at once: stop gives it back its default meaning.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run serves until ctx is done and returns the exit code: 0, 1 for an error, 2 for wrong usage.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := parse(args, stdout, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2
	}
	server, err := pubsubemulator.Start(cfg)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		return 1
	}
	_, _ = fmt.Fprintf(stdout, "pubsub-emulator: PUBSUB_EMULATOR_HOST=%s faults=http://%s journal=%s\n",
		server.Addr(), server.FaultAddr(), cfg.Dir)
	<-ctx.Done()
	if err := server.Close(); err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

// parse reads the flags. Help goes to stdout, since it was asked for; complaints go to stderr.
func parse(args []string, stdout, stderr io.Writer) (pubsubemulator.Config, error) {
	var cfg pubsubemulator.Config
	flags := flag.NewFlagSet("pubsub-emulator", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&cfg.Addr, "addr", "127.0.0.1:18085", "loopback `host:port` of the Pub/Sub service; port 0 picks one")
	flags.StringVar(&cfg.FaultAddr, "fault-addr", "127.0.0.1:18086",
		"loopback `host:port` of the fault port; port 0 picks one")
	flags.StringVar(&cfg.Dir, "dir", "", "`directory` of the journal; created when missing (required)")
	flags.BoolVar(&cfg.Fsync, "fsync", false, "answer publishers only when the disk has the message")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, _ = io.WriteString(stdout, usage)
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		_, _ = io.WriteString(stdout, faultUsage)
		return cfg, err
	case err == nil && flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case err == nil && cfg.Dir == "":
		err = errors.New("say where to keep the journal: -dir DIR")
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "pubsub-emulator: %v; -h explains\n", err)
	}
	return cfg, err
}
