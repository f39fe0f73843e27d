package daemon

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
	"github.com/posthaste-dev/posthaste/test/kit/process"
)

// canary is the password of everything, and nobody may see it.
const canary = "c4nary-s3cret"

// The commands, built once.
var binary, marketplaceBinary string

func TestMain(m *testing.M) {
	for command, program := range map[string]*string{
		"cmd/outbox-publisher": &binary, "examples/marketplace/cmd/outbox-publisher": &marketplaceBinary,
	} {
		var err error
		if *program, err = process.Built(context.Background(), command); err != nil {
			panic(err)
		}
	}
	os.Exit(goroutines.Run(m, goroutines.Linked))
}

// publisher is a process.
type publisher struct {
	*process.Process
	t       *testing.T
	address string // of the probes
}

// settings are what a test gives its publisher. What is empty is not given.
type settings struct {
	program                          string // defaults to outbox-publisher
	database, schema, nats, registry string
	more                             []string // of the environment
	args                             []string
}

func (s settings) environ() []string {
	lines := append([]string{
		"POSTHASTE_DATABASE_SCHEMA=" + s.schema, "POSTHASTE_HTTP_LISTEN=127.0.0.1:0", "HOME=/nonexistent",
	}, s.more...)
	if s.database != "" {
		lines = append(lines, "POSTHASTE_DATABASE_URL="+withPassword(s.database))
	}
	if s.nats != "" {
		lines = append(lines, "POSTHASTE_BROKER=nats", "POSTHASTE_NATS_URL="+withPassword(s.nats))
	}
	if s.registry != "" {
		lines = append(lines, "POSTHASTE_REGISTRY_FILE="+s.registry)
	}
	return lines
}

// withPassword puts the secret into a URL. The servers of the tests take any.
func withPassword(url string) string {
	scheme, rest, _ := strings.Cut(url, "://")
	user, host, found := strings.Cut(rest, "@")
	if !found {
		user, host = "relay", rest
	}
	user, _, _ = strings.Cut(user, ":")
	return scheme + "://" + user + ":" + canary + "@" + host
}

var addressPattern = regexp.MustCompile(`"msg":"answering probes","address":"([^"]+)"`)

// start runs the command. When the test ends it is killed, and what it wrote is searched for the secret.
func start(t *testing.T, s settings) *publisher {
	t.Helper()
	running, err := process.Start(process.Command{
		Program: cmp.Or(s.program, binary), Args: s.args, Environment: s.environ(), Log: filepath.Join(t.TempDir(), "log"),
	})
	if err != nil {
		t.Fatal(err)
	}
	p := &publisher{Process: running, t: t}
	t.Cleanup(func() {
		p.Kill() // nothing outlives that
		p.public(p.Said())
		if t.Failed() {
			t.Logf("the publisher's output:\n%s", tail(p.Said(), 20_000))
		}
	})
	p.until("it answers probes", func() bool { return addressPattern.MatchString(p.Said()) })
	p.address = addressPattern.FindStringSubmatch(p.Said())[1]
	return p
}

func tail(text string, most int) string { return text[max(0, len(text)-most):] }

// public fails if a text that others can read has the secret.
func (p *publisher) public(text string) {
	p.t.Helper()
	if strings.Contains(text, canary) {
		p.t.Errorf("the secret is shown:\n%s", text)
	}
}

// until waits for something that this process brings about.
func (p *publisher) until(what string, is func() bool) {
	p.t.Helper()
	eventually.True(p.t, what, func() bool {
		over := !p.Alive() // and does nothing any more
		if is() {
			return true
		}
		if over {
			p.t.Fatalf("it ended with %v before %s", p.Err(), what)
		}
		return false
	})
}

// probe asks one of the probes. A status of 0 means that nobody answered.
func (p *publisher) probe(path string) (status int, body string) {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, "http://"+p.address+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: eventually.Patience}
	response, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	p.public(string(text))
	return response.StatusCode, string(text)
}

// untilReady waits until /readyz answers so, with these words in it, while /livez stays good.
func (p *publisher) untilReady(status int, words string) {
	p.t.Helper()
	var last string
	p.until(fmt.Sprintf("readyz is %d with %q", status, words), func() bool {
		if live, body := p.probe("/livez"); live != http.StatusOK {
			p.t.Errorf("livez is %d: %s", live, body)
		}
		got, body := p.probe("/readyz?verbose")
		last = body
		return got == status && strings.Contains(body, words)
	})
	p.t.Logf("readyz is %d:\n%s", status, last)
}

func (p *publisher) signal(signal syscall.Signal) {
	p.t.Helper()
	if err := p.Signal(signal); err != nil {
		p.t.Fatal(err)
	}
}

// ends waits for the end and returns the exit code.
func (p *publisher) ends() int {
	p.t.Helper()
	eventually.Receive(p.t, "it has ended", p.Ended)
	return p.ExitCode()
}
