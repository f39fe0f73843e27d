package crash

import (
	"context"
	"fmt"
	"time"

	"github.com/posthaste-dev/posthaste/test/kit/process"
)

// command is the program whose processes die: the proof itself, built so that points are deadly.
const command = "github.com/posthaste-dev/posthaste/test/cmd/proof-crash"

// Build builds the program with the tag crash into a folder.
func Build(ctx context.Context, folder string) (executable string, err error) {
	return process.BuildDeadly(ctx, folder, command)
}

// child is a process under way.
type child struct {
	*process.Process
	task task
}

// start starts a process. Point, when given, is where it shall die, as POSTHASTE_CRASH has it; hit is the file
// that tells that it did.
func start(executable string, l task, point, hit string, environment []string) (*child, error) {
	p, err := process.Child{
		Executable: executable, Folder: l.Folder, Name: "process-" + l.Name, Told: l, Point: point, Death: hit,
		Environment: environment,
	}.Start()
	return &child{p, l}, err
}

// leaveTime is how long a relay that was asked to stop may take: its drain time, and much more.
const leaveTime = 2 * time.Minute

// leave asks it to stop, and waits until it has.
func (p *child) leave(ctx context.Context) error {
	switch stopped, err := p.Stop(ctx, leaveTime); {
	case err != nil:
		return err
	case !stopped:
		return fmt.Errorf("%s was asked to stop and did not within %s", p.task.Name, leaveTime)
	case p.Err() != nil:
		return fmt.Errorf("%s was asked to stop and failed: %w: %s", p.task.Name, p.Err(), p.LastWords())
	default:
		return nil
	}
}
