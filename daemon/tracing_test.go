package daemon

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
)

// tracedProgram is one whose tracing does what the test says.
func tracedProgram(t *testing.T,
	open func(publish.Publisher, TracingOptions) (publish.Publisher, func(), error),
) Program {
	t.Helper()
	key := config.Text("tracing.endpoint", config.Spec[string]{Doc: "Where to."})
	p := inProcess(t, nil)
	p.Tracing = &Tracing{
		Keys: []config.AnyKey{key},
		Check: func(values *config.Values, insecure bool) []config.Problem {
			if key.Get(values) == "far" && !insecure {
				return []config.Problem{values.Problem(key, "is insecure")}
			}
			return nil
		},
		Open: func(_ context.Context, _ *config.Values, publisher publish.Publisher,
			options TracingOptions,
		) (publish.Publisher, func(), error) {
			return open(publisher, options)
		},
	}
	return p
}

// watcher keeps the configuration that a program gives its relay.
type watcher struct {
	http.Handler
	settings relay.Config
}

func (w *watcher) Configure(settings *relay.Config) { w.settings = *settings }
func (w *watcher) Watch(*relay.Relay)               {}

// configured runs the whole program, stopped from the beginning, and returns what it gave its relay.
func configured(t *testing.T, p Program, args ...string) relay.Config {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := &watcher{Handler: http.NotFoundHandler()}
	p.Metrics = w
	if err := p.Run(ctx, append([]string{"--http-listen="}, args...), []string{nowhere}, io.Discard); err != nil {
		t.Fatal(err)
	}
	return w.settings
}

func TestTracingIsChecked(t *testing.T) {
	t.Parallel()
	p := tracedProgram(t, nil)
	if code, _, stderr := execute(t, p, []string{"run", "--tracing-endpoint=far"}, nowhere); code != exitUsage ||
		!strings.Contains(stderr, "is insecure") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if _, err := p.load([]string{"--tracing-endpoint=far", "--insecure-allow=tracing"}, []string{nowhere}); err != nil {
		t.Errorf("allowed, and refused: %v", err)
	}
	p.Tracing = nil
	if _, err := p.load([]string{"--insecure-allow=tracing"}, []string{nowhere}); err == nil {
		t.Error("what cannot be traced can be allowed to be insecure")
	}
}

// The relay publishes through what tracing made, and tracing ends once.
func TestTracingIsOpenedAndEnded(t *testing.T) {
	t.Parallel()
	ended := 0
	var given TracingOptions
	wrapped := publish.PublisherFunc(func(context.Context, *publish.Message) error { return errors.New("traced") })
	p := tracedProgram(t, func(_ publish.Publisher, options TracingOptions) (publish.Publisher, func(), error) {
		given = options
		return wrapped, func() { ended++ }, nil
	})
	loaded, err := p.load([]string{"--relay-name=a"}, []string{nowhere})
	if err != nil {
		t.Fatal(err)
	}
	running := &publisher{loaded: loaded, program: p}
	traced, err := running.trace(t.Context(), p.Brokers[0], publish.PublisherFunc(nil))
	if err != nil || traced.Publish(t.Context(), nil) == nil || running.close() != nil || ended != 1 {
		t.Errorf("%v; ended %d times", err, ended)
	}
	if given.Program != p.Name || given.Version != "v1" || given.Instance != "a" || given.System != "here" {
		t.Errorf("it was opened with %+v", given)
	}
	// The same through the whole program: the database is nowhere, so it ends with the context.
	settings := configured(t, p)
	if ended != 2 || settings.Publisher == nil || settings.Publisher.Publish(t.Context(), nil) == nil {
		t.Errorf("the relay publishes past tracing, or it ended %d times", ended)
	}
}

func TestTracingIsOff(t *testing.T) {
	t.Parallel()
	for name, is := range map[string]error{"off": nil, "broken": errors.New("no")} {
		p := tracedProgram(t, func(publish.Publisher, TracingOptions) (publish.Publisher, func(), error) {
			return nil, nil, is
		})
		loaded, err := p.load(nil, []string{nowhere})
		if err != nil {
			t.Fatal(err)
		}
		running := &publisher{loaded: loaded, program: p}
		plain := &struct{ publish.PublisherFunc }{}
		got, err := running.trace(t.Context(), p.Brokers[0], plain)
		if !errors.Is(err, is) || is == nil && got != plain || running.endTracing != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
