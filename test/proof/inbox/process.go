package inbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/posthaste-dev/posthaste/test/kit/process"
)

// command is the program whose processes die: the proof itself, built so that points are deadly.
const command = "github.com/posthaste-dev/posthaste/test/cmd/proof-inbox"

// Build builds the program with the tag crash into a folder.
func Build(ctx context.Context, folder string) (executable string, err error) {
	return process.BuildDeadly(ctx, folder, command)
}

// child is a process under way.
type child struct {
	*process.Process
	task  task
	death string // the file that tells where it died
	asked bool   // to end
}

// start starts a process that dies at a point, if one is given, as POSTHASTE_CRASH has it.
func start(executable, folder string, l task, point string, environment []string) (*child, error) {
	l.Journal = filepath.Join(folder, l.Name+".journal")
	death := filepath.Join(folder, l.Name+".death")
	p, err := process.Child{
		Executable: executable, Folder: folder, Name: l.Name, Told: l, Point: point, Death: death, Environment: environment,
	}.Start()
	return &child{Process: p, task: l, death: death}, err
}

// leaveTime is how long a process that was asked to stop may take. Much more than it needs.
const leaveTime = 90 * time.Second

// leave asks a process to stop and waits until it has.
func (p *child) leave() error {
	stopped, err := p.Stop(context.Background(), leaveTime)
	if err == nil && !stopped {
		err = fmt.Errorf("inbox proof: %s was asked to stop and did not within %s", p.task.Name, leaveTime)
	}
	p.asked = stopped
	return err
}

// ending is how a process ended, once it has.
func (p *child) ending() (ending, error) {
	<-p.Ended
	switch err := p.Err(); {
	case err == nil, p.KilledBy(syscall.SIGTERM) && p.asked: // before it could listen
		return ending{}, nil
	case !p.KilledBy(syscall.SIGKILL):
		return ending{}, fmt.Errorf("inbox proof: %s failed: %w: %s", p.task.Name, err, p.LastWords())
	}
	text, err := os.ReadFile(p.death) // there is none when the parent has killed it
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return ending{}, fmt.Errorf("inbox proof: %w", err)
	}
	point, _, _ := strings.Cut(string(text), " ")
	return ending{Killed: true, Point: point}, nil
}
