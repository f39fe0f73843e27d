package daemon

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
)

// opened is what happened to a broker of a test.
type opened struct {
	options []Options
	asked   []Options
	got     []string // topics
	closed  int
	ready   error
}

// serving is a program with two brokers, east and west, and the topics orders, invoices and letters.
func serving(t *testing.T) (p Program, east, west *opened) {
	t.Helper()
	var contracts []outbox.AnyContract
	for _, topic := range []string{"orders", "invoices", "letters"} {
		contracts = append(contracts,
			outbox.Define[struct{}](outbox.Contract{Type: "of_" + topic, Aggregate: "order", Topic: topic}))
	}
	registry, err := outbox.NewRegistry(contracts...)
	if err != nil {
		t.Fatal(err)
	}
	east, west = &opened{}, &opened{}
	of := func(name string, o *opened) Broker {
		address := config.Text(name+".address", config.Spec[string]{Doc: "Where it is."})
		return Broker{
			Name: name, Keys: []config.AnyKey{address},
			Check: func(values *config.Values, insecure bool) []config.Problem {
				if address.Get(values) == "" {
					return []config.Problem{values.Problem(address, "is missing")}
				}
				return nil
			},
			Diagnose: func(_ context.Context, _ *config.Values, options Options) []Finding {
				o.asked = append(o.asked, options)
				return []Finding{{Code: "topic_missing", Text: strings.Join(options.Topics, " ")}}
			},
			Open: func(_ context.Context, _ *config.Values, options Options) (*Connection, error) {
				o.options = append(o.options, options)
				return &Connection{
					Publisher: publish.PublisherFunc(func(_ context.Context, message *publish.Message) error {
						o.got = append(o.got, message.Topic)
						return nil
					}),
					Ready: func(context.Context) error { return o.ready },
					Close: func() error { o.closed++; return nil },
				}, nil
			},
		}
	}
	p = Program{Registry: registry, Brokers: []Broker{of("east", east), of("west", west)}}
	return p.withDefaults(), east, west
}

var bothAddresses = []string{nowhere, "POSTHASTE_BROKER=east", "POSTHASTE_EAST_ADDRESS=a", "POSTHASTE_WEST_ADDRESS=b"}

// Half of a system moves: each broker is opened with the topics that go to it, and gets their messages alone.
func TestTopicsGoToTheirBrokers(t *testing.T) {
	t.Parallel()
	p, east, west := serving(t)
	found, err := p.load([]string{"--brokers=orders=west,letters=west"}, bothAddresses)
	if err != nil {
		t.Fatal(err)
	}
	running := &publisher{loaded: found, program: p, logger: slog.New(slog.DiscardHandler), connections: connections{}}
	if err := running.connections.open(t.Context(), found, p, running.logger); err != nil {
		t.Fatal(err)
	}
	main, others, err := running.publishers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for topic, publisher := range others {
		_ = publisher.Publish(t.Context(), &publish.Message{Topic: topic})
	}
	_ = main.Publish(t.Context(), &publish.Message{Topic: "invoices"})
	slices.Sort(west.got)
	for name, is := range map[string]struct {
		got  *opened
		want []string
	}{"east": {east, []string{"invoices"}}, "west": {west, []string{"letters", "orders"}}} {
		if !slices.Equal(is.got.got, is.want) || len(is.got.options) != 1 ||
			!slices.Equal(is.got.options[0].Topics, is.want) {
			t.Errorf("%s was opened with %+v and got %v, want %v", name, is.got.options, is.got.got, is.want)
		}
	}
	if err := running.connections.close(); err != nil || east.closed != 1 || west.closed != 1 {
		t.Errorf("%v, closed %d and %d times", err, east.closed, west.closed)
	}
}

// One that no topic goes to is neither asked for its keys nor opened.
func TestABrokerWithoutTopicsIsLeftAlone(t *testing.T) {
	t.Parallel()
	p, east, west := serving(t)
	if err := p.Run(canceled(t), []string{"--http-listen="}, bothAddresses[:3], t.Output()); err != nil {
		t.Fatal(err)
	}
	if len(east.options) != 1 || east.closed != 1 || len(west.options) != 0 {
		t.Errorf("east %+v, west %+v", east, west)
	}
}

func TestProblemsOfBrokersNameTheirKeys(t *testing.T) {
	t.Parallel()
	p, _, _ := serving(t)
	_, err := p.load([]string{"--brokers=orders=wst,invoice=west"}, bothAddresses[:3])
	for _, want := range []string{
		`flag --brokers: brokers: topic "orders": "wst", must be one of east, west; did you mean west?`,
		`flag --brokers: brokers: topic "invoice": no contract has it; those that are: invoices, letters, orders`,
		"west.address: is missing",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("not told: %s\nin: %v", want, err)
		}
	}
}

// The doctor asks each broker about its own topics, and the probes name the one that is not ready.
func TestEveryBrokerIsAsked(t *testing.T) {
	t.Parallel()
	p, _, west := serving(t)
	args := []string{"--brokers=orders=west"}
	findings, err := p.Diagnose(t.Context(), args, bothAddresses)
	if err != nil || len(findings) != 2 || findings[0].Broker+findings[0].Text != "eastinvoices letters" ||
		findings[1].Broker+findings[1].Text != "westorders" {
		t.Errorf("got %+v, %v", findings, err)
	}
	tests, err := p.TestTopics(t.Context(), args, bothAddresses, []string{"orders", "elsewhere"}, true)
	if err != nil || len(tests) != 2 || tests[0].Broker != "west" || tests[0].Findings[0].Broker != "west" ||
		tests[1].Broker != "east" || !slices.Equal(west.got, []string{"orders"}) || west.closed != 1 {
		t.Errorf("got %+v, %v, west %+v", tests, err, west)
	}
	found, err := p.load(args, bothAddresses)
	if err != nil {
		t.Fatal(err)
	}
	west.ready = errors.New("not connected")
	running := &publisher{loaded: found, program: p, logger: slog.New(slog.DiscardHandler), connections: connections{}}
	if err := running.connections.open(t.Context(), found, p, running.logger); err != nil {
		t.Fatal(err)
	}
	answers := (&probes{publisher: running}).checkBrokers(t.Context())
	if len(answers) != 2 || answers[0].problem != "" || !strings.HasPrefix(answers[1].problem, "west: not connected") {
		t.Errorf("the probes say %+v", answers)
	}
}

// canceled is a context that has ended.
func canceled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
