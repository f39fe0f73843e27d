package marketplace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/process"
	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

// environment is what one deployment of the marketplace is configured with: a database, topics and marks of its own.
func environment(t *testing.T, more ...string) []string {
	t.Helper()
	name := pgtest.NewName("marketplace")
	return append([]string{
		"HOME=/nonexistent", "POSTHASTE_DATABASE_URL=" + nameDatabase(t, pgtest.Servers()[0]),
		"POSTHASTE_HTTP_LISTEN=127.0.0.1:0",
		"MARKETPLACE_API_LISTEN=127.0.0.1:0", "MARKETPLACE_WORKER_LISTEN=127.0.0.1:0", "POSTHASTE_NATS_STREAM=" + name,
		"POSTHASTE_TOPIC_DEFAULT=" + name + "-domain", "POSTHASTE_TOPIC_ANALYTICS=" + name + "-analytics",
		"POSTHASTE_TOPIC_NOTIFICATIONS=" + name + "-notifications", "POSTHASTE_TOPIC_BILLING=" + name + "-billing",
	}, more...)
}

// run runs a program to its end, and returns what it wrote and its exit code.
func run(t *testing.T, environ []string, name string, args ...string) (output string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	defer cancel()
	command := exec.CommandContext(ctx, filepath.Join(programs, name), args...)
	command.Env = append([]string{}, environ...) // none at all is not this process's
	text, err := command.CombinedOutput()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return string(text), command.ProcessState.ExitCode()
}

// must runs a program that must succeed.
func must(t *testing.T, environ []string, name string, args ...string) string {
	t.Helper()
	output, code := run(t, environ, name, args...)
	if code != 0 {
		t.Fatalf("%s ended with %d:\n%s", name, code, output)
	}
	return output
}

// program is one that runs.
type program struct {
	*process.Process
	t    *testing.T
	name string
}

func start(t *testing.T, environ []string, name string, args ...string) *program {
	t.Helper()
	running, err := process.Start(process.Command{
		Program: filepath.Join(programs, name), Args: args, Environment: environ, Log: filepath.Join(t.TempDir(), "log"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		running.Kill()
		if t.Failed() {
			t.Logf("%s said:\n%s", name, running.Said())
		}
	})
	return &program{running, t, name}
}

// address waits until the program says that it is ready, and returns where.
func (p *program) address() (address string) {
	p.t.Helper()
	eventually.True(p.t, p.name+" is ready", func() bool {
		if !p.Alive() {
			p.t.Fatalf("%s has ended", p.name)
		}
		_, line, found := strings.Cut(p.Said(), "ready "+p.name+" ")
		address, _, _ = strings.Cut(line, "\n")
		return found
	})
	return address
}

// stop asks the program to end, which it must do well.
func (p *program) stop() {
	p.t.Helper()
	if stopped, err := p.Stop(p.t.Context(), eventually.Patience); err != nil || !stopped {
		p.t.Fatalf("%s does not stop: %v", p.name, err)
	}
	if code := p.ExitCode(); code != 0 {
		p.t.Errorf("%s ended with %d", p.name, code)
	}
}

// onNATS is a deployment on the NATS of `make services`.
func onNATS(t *testing.T) []string {
	t.Helper()
	address := services.NATS()
	environ := environment(t, "POSTHASTE_BROKER=nats", "POSTHASTE_NATS_URL="+address)
	t.Cleanup(func() {
		conn, err := nats.Connect(address, nats.Timeout(eventually.Patience))
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(eventually.Patience))
		if err == nil {
			err = js.DeleteStream(context.Background(), variable(environ, "POSTHASTE_NATS_STREAM"))
		}
		if err != nil {
			t.Error(err)
		}
	})
	return environ
}

// onPubSub is a deployment on an emulator of its own, which is the broker of who says nothing.
func onPubSub(t *testing.T) []string {
	t.Helper()
	emulator, err := pubsubemulator.Start(pubsubemulator.Config{Addr: "127.0.0.1:0", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = emulator.Close() })
	return environment(t, "POSTHASTE_PUBSUB_PROJECT=shop", "POSTHASTE_PUBSUB_ENDPOINT="+emulator.Addr())
}

func variable(environ []string, name string) string {
	for _, line := range environ {
		if value, found := strings.CutPrefix(line, name+"="); found {
			return value
		}
	}
	return ""
}

// IN-5 and OP-7, the whole way: people use the API, a worker leaves in between, and in the end there is one notice for
// every change of a licence and the read model is as the shop is.
func TestTheProgramsTogether(t *testing.T) {
	t.Parallel()
	for name, newEnvironment := range map[string]func(t *testing.T) []string{
		"nats, inbox in PostgreSQL": onNATS,
		"Pub/Sub, inbox in Redis": func(t *testing.T) []string {
			t.Helper()
			return append(onPubSub(t), "MARKETPLACE_INBOX_STORE=redis", "MARKETPLACE_REDIS_URL=redis://"+services.Redis(),
				"MARKETPLACE_REDIS_PREFIX="+newPrefix())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			environ := newEnvironment(t)
			for range 2 { // what is there stays
				must(t, environ, "setup")
			}
			api, publisher := start(t, environ, "api"), start(t, environ, "outbox-publisher")
			worker, leaving := start(t, environ, "worker"), start(t, environ, "worker")
			for _, path := range []string{
				api.address() + "/readyz", worker.address() + "/livez", worker.address() + "/readyz", leaving.address() + "/readyz",
			} {
				get(t, path)
			}
			first := load(t, environ, api.address(), 1)
			leaving.stop() // with work before it: the other one goes on
			second := load(t, environ, api.address(), 1001)
			reported := must(t, environ, "report")
			if want := fmt.Sprintf(" emitted=%d ", first+second); !strings.Contains(reported, want) ||
				!strings.Contains(reported, " ok=true") {
				t.Errorf("want%s\n%s", want, reported)
			}
			if text := get(t, worker.address()+"/metrics"); !strings.Contains(text, `consumer="compliance"`) ||
				!strings.Contains(text, `consumer="order-read-model"`) {
				t.Errorf("the metrics are\n%s", text)
			}
			for _, p := range []*program{api, publisher, worker} {
				p.stop()
			}
		})
	}
}

// get asks for a page until it is there: a program that is ready says for a moment that it is not, if its database
// takes its time.
func get(t *testing.T, address string) (text string) {
	t.Helper()
	err := eventually.Within(t.Context(), eventually.Patience, address+" answers well", func() (bool, error) {
		response, err := (&http.Client{Timeout: eventually.Patience}).Get(address)
		if err != nil {
			return true, err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		text = string(body)
		if err == nil && response.StatusCode == http.StatusOK {
			return true, nil
		}
		return false, errors.Join(err, errors.New(response.Status+" "+text))
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// load has people use the API until there are enough events, and returns how many the load has counted.
func load(t *testing.T, environ []string, api string, seed int) (events int) {
	t.Helper()
	output := must(t, environ, "load", "-api", api, "-rate", "50", "-duration", "2s", "-events", "20",
		"-seed", fmt.Sprint(seed))
	_, line, _ := strings.Cut(output, "load requests=")
	_, line, _ = strings.Cut(line, " events=")
	if _, err := fmt.Sscan(line, &events); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return events
}

// The workers may have a database of their own: it gets an inbox and no outbox.
func TestTheWorkersInADatabaseOfTheirOwn(t *testing.T) {
	t.Parallel()
	own := nameDatabase(t, pgtest.Servers()[1])
	environ := append(onPubSub(t), "MARKETPLACE_WORKER_DATABASE_URL="+own)
	must(t, environ, "setup")
	api := start(t, environ, "api")
	_, _ = start(t, environ, "outbox-publisher"), start(t, environ, "worker")
	must(t, environ, "load", "-api", api.address(), "-rate", "50", "-duration", "1s")
	must(t, environ, "report")
	for address, want := range map[string]string{
		own: "inbox_handled order_read_model", variable(environ, "POSTHASTE_DATABASE_URL"): "orders outbox_events",
	} {
		got := tables(t, address, "inbox_handled", "order_read_model", "orders", "outbox_events")
		if got != want {
			t.Errorf("got the tables %q, want %q", got, want)
		}
	}
}

// A subscription that is there and of another topic would get nothing forever: setup says so.
func TestASubscriptionOfAnotherTopicIsRejected(t *testing.T) {
	t.Parallel()
	environ := onPubSub(t)
	must(t, environ, "setup")
	output, code := run(t, environ, "setup", "--topic-default=another")
	if code != 1 ||
		!strings.Contains(output, "the subscription pf-domain-events-sub is one of projects/shop/topics/marketplace") {
		t.Errorf("it ended with %d:\n%s", code, output)
	}
}

// Settings that cannot work are told all at once, and nothing starts.
func TestSettingsAreRejected(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		program string
		environ []string
		args    []string
		want    []string
	}{
		{"api", nil, nil, []string{"database.url", "is missing"}},
		{
			"api",
			[]string{"MARKETPLACE_API_LISTN=x"},
			nil,
			[]string{"MARKETPLACE_API_LISTN is not known", "MARKETPLACE_API_LISTEN"},
		},
		{"worker", nil, []string{"--inbox-store=redis"}, []string{"pubsub.project", "redis.url"}},
		{"worker", nil, []string{"--broker=nats"}, []string{"nats.url"}},
		{"setup", nil, []string{"--broker=rabbits"}, []string{"rabbits"}},
		{"worker", []string{"POSTHASTE_INSECURE_ALLOW=all"}, nil, []string{`"all": must be some of database, nats, pubsub`}},
		{
			"worker",
			[]string{
				"POSTHASTE_DATABASE_URL=postgres://a@db.example.com/shop",
				"MARKETPLACE_WORKER_DATABASE_URL=postgres://a@inbox.example.com/shop",
			},
			nil,
			[]string{"db.example.com is not on this machine", "inbox.example.com is not on this machine"},
		},
		{
			"setup",
			[]string{"POSTHASTE_NATS_URL=127.0.0.1,user:secret@nats.example.com:4222,tls://other.example.com"},
			[]string{"--broker=nats"},
			[]string{"nats.example.com is not on this machine: write tls://nats.example.com:4222; or allow plain text with " +
				"insecure.allow: nats"},
		},
	} {
		output, code := run(t, test.environ, test.program, test.args...)
		if code != 2 {
			t.Errorf("%s %v ended with %d:\n%s", test.program, test.args, code, output)
		}
		for _, want := range test.want {
			if !strings.Contains(output, want) {
				t.Errorf("%s %v does not say %q:\n%s", test.program, test.args, want, output)
			}
		}
	}
}
