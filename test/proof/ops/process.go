package ops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
	"github.com/posthaste-dev/posthaste/test/kit/process"
)

// program is the one whose processes die: the proof itself, built so that points are deadly.
const program = "github.com/posthaste-dev/posthaste/test/cmd/proof-ops"

// Build builds the program with the tag crash into a folder.
func Build(ctx context.Context, folder string) (executable string, err error) {
	return process.BuildDeadly(ctx, folder, program)
}

// order is a job as a person asks for it.
type order struct {
	Action operator.Action
	Verb   operator.Verb
	Filter string
	Topic  string
	Rate   float64
	Max    int64
}

func (o order) spec() (spec operator.JobSpec, err error) {
	filter, err := operator.ParseFilter(o.Filter)
	if err != nil {
		return spec, err
	}
	return operator.JobSpec{Verb: o.Verb, Filter: filter, Topic: o.Topic, Rate: o.Rate, Max: o.Max}, nil
}

// task is what a process is told: to start a job, or, without one, to work on all.
type task struct {
	Database string
	Name     string
	Start    *order
}

// Live is a process that starts a job and stays, as somebody's terminal, or one that works on jobs. Both until they are
// killed, or until whoever started them is gone.
func Live(ctx context.Context, file string) error {
	var t task
	if err := process.Told(file, &t); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends when the parent does
		cancel(errors.New("the parent is gone"))
	}()
	pool, err := pgxpool.New(ctx, t.Database)
	if err != nil {
		return fmt.Errorf("ops: %w", err)
	}
	defer pool.Close()
	person := operator.New(pool, outbox.DefaultSchema)
	if t.Start == nil {
		person.NewWorker(t.Name, slog.New(slog.NewTextHandler(os.Stderr, nil))).Run(ctx)
		return nil
	}
	spec, err := t.Start.spec()
	if err != nil {
		return err
	}
	plan, err := person.PlanJob(ctx, spec, longest)
	if err != nil {
		return err
	}
	job, err := person.StartJob(ctx, t.Start.Action, plan.Spec, plan.Events)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(os.Stdout, "%s %d\n", startedWord, job.Expected); err != nil {
		return fmt.Errorf("ops: %w", err)
	}
	<-ctx.Done()
	return nil
}

// startedWord is what a terminal says when its job is there.
const startedWord = "started"

// child is a process under way.
type child struct {
	*process.Process
	name  string
	death string // the file that tells where it died
}

// start starts a process that dies at a point, if one is given.
func (r *run) start(t task, point string) (*child, error) {
	r.started++
	t.Name = fmt.Sprintf("%s-%d", t.Name, r.started)
	t.Database = r.db.urls["operator"]
	death := filepath.Join(r.plan.Folder, t.Name+".death")
	p, err := process.Child{
		Executable: r.plan.Executable, Folder: r.plan.Folder, Name: t.Name, Told: t, Point: point, Death: death,
	}.Start()
	if err != nil {
		return nil, err
	}
	r.children = append(r.children, p)
	return &child{Process: p, name: t.Name, death: death}, nil
}

// died is the point at which a process died; empty: this process killed it. Another end is an error.
func (c *child) died() (point string, err error) {
	if !c.KilledBy(syscall.SIGKILL) {
		return "", fmt.Errorf("ops: %s ended: %w: %s", c.name, c.Err(), c.LastWords())
	}
	text, err := os.ReadFile(c.death)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	point, _, _ = strings.Cut(string(text), " ")
	return point, err
}
