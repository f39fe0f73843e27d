package cluster

import (
	_ "embed"
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

//go:embed keeper.sh
var keeperScript string

// keeper waits beside the test's process for the end of it, or for close, and then takes the cluster away. It
// waits for the end of a pipe: the system closes that however the process dies.
type keeper struct {
	command *exec.Cmd
	pipe    io.Closer
}

func keep(folder string) (*keeper, error) {
	command := exec.Command("sh", "-c", keeperScript, "keeper", folder)
	command.Dir = "/"
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // signals for the test are not for it
	pipe, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	return &keeper{command: command, pipe: pipe}, nil
}

// close returns when everything is gone. A second close finds nothing to do.
func (k *keeper) close() error {
	if k.command == nil {
		return nil
	}
	command := k.command
	k.command = nil
	_ = k.pipe.Close()
	if err := command.Wait(); err != nil {
		return fmt.Errorf("cluster: the folder could not be taken away: %w", err)
	}
	return nil
}
