package publisher

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/process"
)

// Walk is the first steps of a page on servers that have nothing yet. The first command runs a publisher until it is
// stopped; each of the others must end well, and one of them emits an event and says so.
type Walk struct {
	// Name is what the report calls it.
	Name string
	// Page has the steps in its Section. It is relative to the repository, as is Folder, where they are typed.
	Page, Section, Folder string
	// Database is the name of the database, on the set's newest PostgreSQL; Look is how the broker is looked at.
	Database string
	Look     Look
	// Logs takes what the publisher says.
	Logs string
	// Patience is how long an event may be on its way once the commands have ended. Defaults to the proof's.
	Patience time.Duration
}

// Stock is the walk of docs/outbox.md.
func Stock(logs string) Walk {
	return Walk{
		Name: "stock", Page: "docs/outbox.md", Section: "What a new team member does first", Folder: ".",
		Database: "posthaste", Look: LookAtNATS, Logs: logs,
	}
}

// Marketplace is the walk of the example's own page.
func Marketplace(logs string) Walk {
	return Walk{
		Name: "marketplace", Page: "examples/marketplace/README.md", Section: "First steps", Folder: "examples/marketplace",
		Database: "packfinderz",
		Look:     LookAtPubSub, Logs: logs,
	}
}

// Walked is what came of it.
type Walked struct {
	Name string
	// Steps is how many did what the page says.
	Steps int
	// Delivered is how long it took from the emit until the broker had the event, as the step has said it.
	Delivered time.Duration
	Problems  []string
}

// building is how long the first step may take to install, build, migrate and start. With everything compiled it takes
// a quarter of a minute.
const building = 20 * time.Minute

// ending is how long each of the other steps may take: they build, too, and give up by themselves before.
const ending = 10 * time.Minute

var (
	emittedPattern = regexp.MustCompile(`(?m)^emitted +([0-9a-f-]{36}) `)
	arrivedPattern = regexp.MustCompile(`(?m)^arrived +(\S+) after ([0-9]+) ms`)
)

// Walk does the steps and looks at the broker by itself.
func (f *Fresh) Walk(ctx context.Context, walk Walk, say io.Writer) (_ *Walked, err error) {
	page, err := os.ReadFile(filepath.Join(f.root, walk.Page))
	if err != nil {
		return nil, fmt.Errorf("publisher: %w", err)
	}
	steps, err := ReadSteps(string(page), walk.Section)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", walk.Page, err)
	}
	if walk.Patience == 0 {
		walk.Patience = eventually.Patience
	}
	walked := &Walked{Name: walk.Name}
	sayf := func(format string, args ...any) {
		_, _ = fmt.Fprintf(say, "%s: %s\n", walk.Page, fmt.Sprintf(format, args...)) // of no consequence
	}
	sayf("%s", steps.Commands[0])
	running, err := f.start(walk, steps.Commands[0])
	if err != nil {
		return nil, err
	}
	defer running.interrupt()
	if err := running.until(ctx, "the publisher starts"); err != nil {
		return nil, err
	}
	walked.Steps++
	var said strings.Builder
	for _, command := range steps.Commands[1:] {
		sayf("%s", command)
		text, err := f.run(ctx, walk, command)
		_, _ = io.WriteString(say, text) // of no consequence
		if err != nil {
			walked.Problems = append(walked.Problems, fmt.Sprintf("%s: %s: %v", walk.Name, command, err))
			continue
		}
		walked.Steps++
		said.WriteString(text)
	}
	if problem := f.arrived(ctx, walk, steps, said.String(), walked); problem != nil {
		walked.Problems = append(walked.Problems, fmt.Sprintf("%s: %v", walk.Name, problem))
	}
	sayf("an interrupt")
	running.interrupt()
	if err := running.until(ctx, "the publisher has stopped"); err != nil {
		walked.Problems = append(walked.Problems, fmt.Sprintf("%s: %v", walk.Name, err))
	}
	return walked, nil
}

// arrived says what is wrong with the event that a step has told of.
func (f *Fresh) arrived(ctx context.Context, walk Walk, steps Steps, said string, walked *Walked) error {
	emitted, arrived := emittedPattern.FindStringSubmatch(said), arrivedPattern.FindStringSubmatch(said)
	if emitted == nil || arrived == nil {
		return errors.New("no step says that an event was emitted and has arrived")
	}
	id, topic := emitted[1], arrived[1]
	ctx, cancel := context.WithTimeout(ctx, walk.Patience)
	defer cancel()
	if err := walk.Look(ctx, f, topic, id); err != nil {
		return fmt.Errorf("the event %s was not seen in %s: %w", id, topic, err)
	}
	milliseconds, err := strconv.Atoi(arrived[2])
	if err != nil {
		return fmt.Errorf("how long the event took: %w", err)
	}
	walked.Delivered = time.Duration(milliseconds) * time.Millisecond
	if steps.Query == "" {
		return nil
	}
	// The broker has it first, and the table a moment later.
	address := "postgres://postgres@" + f.Address("POSTGRES18") + "/" + walk.Database + "?sslmode=disable"
	published := regexp.MustCompile(`(?m)^` + id + `\|.*\|published\|`)
	err = eventually.Within(ctx, walk.Patience, "the query of the page shows it as published", func() (bool, error) {
		text, err := exec.CommandContext(ctx, "psql", "-X", "-A", "-t", "-q", "-c", steps.Query, address).CombinedOutput()
		if err != nil {
			return true, fmt.Errorf("psql: %w: %s", err, text)
		}
		return published.Match(text), nil
	})
	if err == nil {
		walked.Steps++
	}
	return err
}

// run runs a command to its end and returns what it said.
func (f *Fresh) run(ctx context.Context, walk Walk, command string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, ending)
	defer cancel()
	run := exec.CommandContext(ctx, "bash", "-c", command)
	run.Dir, run.Env = filepath.Join(f.root, walk.Folder), f.Environment()
	run.WaitDelay = time.Second
	var said bytes.Buffer
	run.Stdout, run.Stderr = &said, &said
	err := run.Run()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, last(said.String()))
	}
	return said.String(), err
}

func last(text string) string { return text[max(0, len(text)-2000):] }

// running is a command that does not end by itself.
type running struct{ *process.Process }

func (f *Fresh) start(walk Walk, command string) (*running, error) {
	p, err := process.Start(process.Command{
		Program: "bash", Args: []string{"-c", command}, Environment: f.Environment(),
		Folder: filepath.Join(f.root, walk.Folder),
		Log:    filepath.Join(walk.Logs, walk.Name+".log"),
	})
	return &running{p}, err
}

// interrupt does what Ctrl-C does: to the command and all that it started.
func (r *running) interrupt() {
	if !r.Alive() {
		return
	}
	_ = syscall.Kill(-r.PID(), syscall.SIGINT)
	if !r.Await(context.Background(), eventually.Patience) { // its log lacks the end, which is found
		_ = syscall.Kill(-r.PID(), syscall.SIGKILL)
		<-r.Ended
	}
}

// until waits until the log has these words. It must not end before.
func (r *running) until(ctx context.Context, words string) error {
	return eventually.Within(ctx, building, "it says "+words, func() (bool, error) {
		over := !r.Alive()
		said, err := os.ReadFile(r.Log) // after it was asked whether it has ended, so that nothing is missed
		if err != nil || strings.Contains(string(said), words) {
			return true, err
		}
		if over {
			return true, fmt.Errorf("publisher: it ended without %q: %s", words, last(string(said)))
		}
		return false, nil
	})
}
