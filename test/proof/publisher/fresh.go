package publisher

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/test/kit/port"
	"github.com/posthaste-dev/posthaste/test/kit/server"
)

// Fresh is a second set of the servers of services/services, with nothing in it: what somebody has who has just cloned
// the repository. None of it runs until a command starts it. Only what was downloaded is shared with the first set.
type Fresh struct {
	root   string // of the repository
	folder string
	shift  int
	ports  map[string]int // by their names in services/settings.env, not moved
}

var portPattern = regexp.MustCompile(`(?m)^PORT_([A-Z0-9_]+)=([0-9]+)$`)

// NewFresh finds a folder and ports for the set. Root is the repository's.
func NewFresh(root string) (*Fresh, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("publisher: %w", err)
	}
	settings, err := os.ReadFile(filepath.Join(root, "services", "settings.env"))
	if err != nil {
		return nil, fmt.Errorf("publisher: %w", err)
	}
	f := &Fresh{root: root, ports: map[string]int{}}
	var all []int
	for _, match := range portPattern.FindAllStringSubmatch(string(settings), -1) {
		number, _ := strconv.Atoi(match[2]) // the pattern lets digits through alone
		f.ports[match[1]], all = number, append(all, number)
	}
	if len(all) == 0 {
		return nil, errors.New("publisher: services/settings.env has no ports")
	}
	if f.shift, err = port.Shift(all...); err != nil {
		return nil, err
	}
	if f.folder, err = os.MkdirTemp("", "posthaste-fresh-"); err != nil {
		return nil, fmt.Errorf("publisher: %w", err)
	}
	// As root the servers run as another user, who must get in.
	if err := os.Chmod(f.folder, 0o755); err != nil {
		return nil, errors.Join(fmt.Errorf("publisher: %w", err), os.RemoveAll(f.folder))
	}
	downloaded := slices.IndexFunc(server.Tools(), func(folder string) bool {
		return filepath.IsAbs(folder) && isFolder(folder)
	})
	if downloaded >= 0 {
		err = os.Symlink(server.Tools()[downloaded], filepath.Join(f.folder, "tools"))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("publisher: %w", err), os.RemoveAll(f.folder))
	}
	return f, nil
}

func isFolder(name string) bool {
	about, err := os.Stat(name)
	return err == nil && about.IsDir()
}

// Address is where a server of the set is once it runs, by its name in services/settings.env.
func (f *Fresh) Address(name string) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(f.ports[name]+f.shift))
}

// Environment is that of a command which shall use the set: this process's, without the settings that it may have. The
// probes' port is any, because the usual one may be another's on this machine.
func (f *Fresh) Environment() []string {
	var list []string
	for _, variable := range os.Environ() {
		ours := slices.ContainsFunc([]string{"POSTHASTE_", "MARKETPLACE_", "PACKFINDERZ_", "PUBSUB_", "PG", "MAKE", "MFLAGS"},
			func(prefix string) bool {
				return strings.HasPrefix(variable, prefix)
			})
		if !ours {
			list = append(list, variable)
		}
	}
	return append(list, "POSTHASTE_SERVICES_DIR="+f.folder, fmt.Sprint("POSTHASTE_SERVICES_PORT_SHIFT=", f.shift),
		"POSTHASTE_HTTP_LISTEN=127.0.0.1:0")
}

// stopping is how long the servers may take to stop. Each is killed after half a minute.
const stopping = 10 * time.Minute

// Close stops what runs and removes all of it.
func (f *Fresh) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopping)
	defer cancel()
	if !isFolder(filepath.Join(f.folder, "run")) { // nothing was ever started
		return f.remove()
	}
	down := exec.CommandContext(ctx, filepath.Join(f.root, "services", "services"), "down", "--wipe")
	down.Env = f.Environment()
	if said, err := down.CombinedOutput(); err != nil {
		return fmt.Errorf("publisher: stop the fresh servers: %w: %s", err, said)
	}
	return f.remove()
}

func (f *Fresh) remove() error {
	if err := os.RemoveAll(f.folder); err != nil {
		return fmt.Errorf("publisher: %w", err)
	}
	return nil
}
