package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/posthaste-dev/posthaste/relay"
)

// The exit codes, which scripts rely on.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// Main is the whole main function of a publisher: it does what the command line says and ends the process.
//
// The first SIGTERM or SIGINT drains. The second ends the process at once if events are in flight, the third in any
// case. SIGHUP has the log tell what has changed in the files since the start. The exit code is 0 when it did what was
// asked, 1 when that failed, and 2 when the configuration or the command line is refused.
func Main(program Program) {
	program = program.withDefaults()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	program.hangups = hangups
	ctx, drain := context.WithCancel(context.Background())
	program.running = &atomic.Pointer[relay.Relay]{}
	go func() {
		sayCut(program.Name, handleSignals(signals, program.inFlight, drain))
		os.Exit(exitFailed) //nolint:revive // this is a main function
	}()
	os.Exit(program.execute(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)) //nolint:revive // as above
}

const usage = `usage: %[1]s [run] [flags]      publish events until a signal comes
       %[1]s config show [flags]  print every key, its value and where it came from
       %[1]s config docs          print the reference page of the keys
       %[1]s health [--live]      ask the publisher that runs here whether it is ready, or alive
       %[1]s version              print the version

Every key is also a flag and an environment variable; --config=FILE names the file.
Exit codes: 0 done, 1 failed, 2 refused.
`

// execute does what one command line says, and returns the exit code.
func (p Program) execute(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	verb, args := command(args)
	var err error
	switch verb {
	case "", "run":
		err = p.Run(ctx, args, environ, stderr)
	case "config show":
		var found *loaded
		if found, err = p.load(args, environ); err == nil {
			_, err = io.WriteString(stdout, found.values.Show())
		}
	case "config docs":
		_, err = io.WriteString(stdout, p.reference())
	case "health":
		err = p.health(ctx, args, environ, stdout)
	case "version":
		_, err = fmt.Fprintln(stdout, p.Name, p.Version)
	case "help":
		_, err = fmt.Fprintf(stdout, usage, p.Name)
	default:
		err = errUsage
	}
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errUsage):
		_, _ = fmt.Fprintf(stderr, usage, p.Name) // nobody is left to tell, here and below
		return exitUsage
	}
	if logged := (*loggedError)(nil); errors.As(err, &logged) {
		return exitFailed
	}
	_, _ = fmt.Fprintln(stderr, err)
	if isConfiguration(err) {
		return exitUsage
	}
	return exitFailed
}

var errUsage = errors.New("the command is not known")

// command takes the words before the first flag.
func command(args []string) (verb string, flags []string) {
	words := 0
	for words < len(args) && !strings.HasPrefix(args[words], "-") {
		words++
	}
	if words == 0 && len(args) > 0 && (args[0] == "--help" || args[0] == "-h") {
		return "help", nil
	}
	return strings.Join(args[:words], " "), args[words:]
}

// reference is the page of the keys.
func (p Program) reference() string {
	return fmt.Sprintf("# Configuration of %s\n\nWritten by `%[1]s config docs`; a test compares. `%[1]s config show` "+
		"prints what is in force and where it came from.\n\n%s",
		p.Name, p.set().Markdown())
}
