package port

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
)

// asks tells a child process of this test the first port of a small range, and for how many of it to ask. It says which
// it got and waits to be killed.
const requests = "POSTHASTE_PORT_ASKS"

// few is how many ports the small range has.
const few = 5

func TestMain(m *testing.M) {
	var from, n int
	if _, err := fmt.Sscan(os.Getenv(requests), &from, &n); err == nil {
		for range n {
			port, err := free(from, from+few)
			fmt.Println(port, err) //nolint:forbidigo // for the parent
		}
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // which never comes
		return
	}
	os.Exit(goroutines.Run(m))
}

// ownRange is where a small range begins that no server is given a port of, and no other test nor run of this one.
func ownRange(t *testing.T) int {
	t.Helper()
	for from := 12_000; from < 14_000; from += few {
		if claim, err := listen("unix", fmt.Sprint("@posthaste-port-test-", from)); err == nil {
			claims.keep(claim) // for good, as are the ports that a test is given of it
			return from
		}
	}
	t.Fatal("400 runs of this test at the same time")
	return 0
}

// request has another process ask for so many ports, and returns what it was told and what ends it.
func request(t *testing.T, from, n int) (said []string, kill func()) {
	t.Helper()
	other := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	other.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d", requests, from, n))
	other.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if _, err := other.StdinPipe(); err != nil { // it stays open for as long as this process lives
		t.Fatal(err)
	}
	output, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	}
	t.Cleanup(kill)
	defer time.AfterFunc(2*time.Minute, func() { _ = other.Process.Kill() }).Stop()
	for lines := bufio.NewScanner(output); len(said) < n; said = append(said, lines.Text()) {
		if !lines.Scan() {
			t.Fatalf("it said %q, and should have spoken %d times within two minutes", said, n)
		}
	}
	return said, kill
}

// TestTwoProcessesShareNoPort: what one has, another does not get, though nobody listens there; until the first is
// dead.
func TestTwoProcessesShareNoPort(t *testing.T) {
	t.Parallel()
	from := ownRange(t)
	taken, err := listen("tcp", address(from+2)) // by somebody who does not ask
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	got := map[string]bool{fmt.Sprint(from+2, " <nil>"): true}
	take := func(n int) (kill func()) {
		said, kill := request(t, from, n)
		for _, port := range said {
			if got[port] || !strings.HasSuffix(port, " <nil>") {
				t.Errorf("given %q, and others had %v", port, got)
			}
			got[port] = true
		}
		return kill
	}
	take(1)
	kill := take(3)
	if said, _ := request(t, from, 1); !strings.Contains(said[0], "none is free") {
		t.Errorf("given %q, and others had %v", said, got)
	}
	kill()
	clear(got)
	take(3)
}

// TestAddress: a server can listen there at once, also while this process starts others.
func TestAddress(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	var others sync.WaitGroup
	for range 4 {
		others.Go(func() {
			for ctx.Err() == nil {
				_ = exec.CommandContext(ctx, "true").Run() // that it was started is enough
			}
		})
	}
	t.Cleanup(others.Wait)
	t.Cleanup(stop)
	for range 200 {
		address, err := Address()
		if err != nil {
			t.Fatal(err)
		}
		listener, err := listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
	}
}

// TestShift: every moved port is one's own, and where one of them is taken the shift is another.
func TestShift(t *testing.T) {
	t.Parallel()
	from := ownRange(t)
	taken, err := listen("tcp", address(from+1)) // by somebody who does not ask
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	// Shifts of 100 and 101 meet the taken port; those of 102 and 103 have a port in common.
	ports := []int{from - 100, from - 99}
	got := []int{}
	for range 2 {
		moved, err := shift(from, from+few, ports)
		if err != nil {
			break
		}
		got = append(got, moved-100)
	}
	if len(got) != 1 || got[0] != 2 && got[0] != 3 {
		t.Errorf("the shifts are %v", got)
	}
	if _, err := Shift(1, 40_000); err == nil {
		t.Error("two ports that are too far apart were moved together")
	}
}
