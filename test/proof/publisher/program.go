package publisher

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/process"
)

// Program is an outbox-publisher that runs.
type Program struct {
	*process.Process
	// Address is where its probes answer.
	Address string
}

// answering is the line of the log, JSON or text, that tells where the probes answer.
var answering = regexp.MustCompile(`answering probes"?[, ]+"?address"?[:=]"?([0-9.:]+)`)

// StartProgram starts the binary with these arguments, an environment of nothing but this, and a log of its own, and
// returns when its probes answer.
func StartProgram(ctx context.Context, binary, log string, environment []string, args ...string) (*Program, error) {
	running, err := process.Start(process.Command{Program: binary, Args: args, Environment: environment, Log: log})
	if err != nil {
		return nil, err
	}
	p := &Program{Process: running}
	err = eventually.Within(ctx, eventually.Patience, "outbox-publisher answers probes", func() (bool, error) {
		said, err := os.ReadFile(log)
		if found := answering.FindSubmatch(said); err == nil && found != nil {
			p.Address = string(found[1])
			return true, nil
		}
		select {
		case <-p.Ended:
			return true, fmt.Errorf("publisher: it ended with %d while it started: %s", p.ExitCode(),
				said[max(0, len(said)-2000):])
		default:
			return false, err
		}
	})
	if err != nil {
		p.Kill()
		return nil, err
	}
	return p, nil
}

// Stop asks the process to stop as `kill` does, and waits for so long at most. It returns how long the stop took; a
// process that does not end is killed, and that is its exit code.
func (p *Program) Stop(most time.Duration) (time.Duration, error) {
	began := time.Now()
	_, err := p.Process.Stop(context.Background(), most)
	return time.Since(began), err
}

// fetchTime is how long a probe may take: much longer than the probes' own limits.
const fetchTime = 20 * time.Second

// Fetch asks for a path. A status of 0 means that nobody answered in time, and the body tells why.
func (p *Program) Fetch(ctx context.Context, method, path string) (status int, body string) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "http://"+p.Address+path, strings.NewReader(""))
	if err != nil {
		return 0, err.Error()
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(text)
}
