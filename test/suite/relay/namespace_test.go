package relay

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// EM-7: modules with namespaces of their own share one table and one fleet. The namespace travels as an attribute, and
// the same aggregate type and id in two namespaces are two aggregates: one that fails holds up its own module only.
func TestNamespacesShareTheTableAndTheFleet(t *testing.T) {
	t.Parallel()
	in := func(namespace, eventType string) *outbox.ContractFor[note] {
		return outbox.Define[note](outbox.Contract{
			Type: eventType, Aggregate: "account", Topic: "accounts", Namespace: namespace,
		})
	}
	billing, chat, none := in("billing", "billing.changed"), in("chat", "chat.changed"), in("", "changed")
	onEach(t, func(t *testing.T, p *env) {
		fixed := make(chan struct{})
		p.broker.answer = func(_ context.Context, message *publish.Message, _ int) error {
			select {
			case <-fixed:
				return nil
			default:
			}
			if d := (&delivery{Message: *message}); message.Namespace == "billing" && d.n() == 1 {
				return &publish.RejectedError{Err: errors.New("not now")}
			}
			return nil
		}
		const events = 3
		for n := 1; n <= events; n++ {
			p.emit(t, billing.New("7", note{N: n}), chat.New("7", note{N: n}), none.New("7", note{N: n}))
		}
		for _, name := range []string{"a", "b"} {
			p.start(t, name, with(func(s *relay.Settings) { s.MaxAttempts = 1_000_000 }), func(config *relay.Config) {
				config.Registry = registry(t, billing, chat, none)
			})
		}
		eventually.True(t, "the other modules' events", func() bool { return p.inState(t, published) == 2*events })
		of := func(namespace string) []delivery {
			return p.broker.deliveries(func(d *delivery) bool {
				return d.Namespace == namespace && !d.ended.IsZero() && d.result == nil
			})
		}
		if n := len(of("billing")); n != 0 {
			t.Errorf("%d events of the module whose first event fails were published", n)
		}
		close(fixed)
		p.awaitPublished(t, 3*events)
		for namespace, attribute := range map[string]string{"billing": "billing", "chat": "chat", "default": ""} {
			var numbers []int
			for _, d := range of(namespace) {
				numbers = append(numbers, d.n())
				if got, there := d.Attributes["namespace"]; got != attribute || there != (attribute != "") {
					t.Errorf("namespace %s travels as %q", namespace, got)
				}
				if want := namespace + "/account/7"; d.Key != want {
					t.Errorf("the key is %s, want %s", d.Key, want)
				}
			}
			if !slices.Equal(numbers, []int{1, 2, 3}) {
				t.Errorf("namespace %s: %v", namespace, numbers)
			}
		}
		if n := p.Count(t, "SELECT count(DISTINCT namespace) FROM {schema}.outbox_events"); n != 3 {
			t.Errorf("%d namespaces in the table, want 3", n)
		}
	})
	// A type's name is unique across namespaces: the registry has one contract for it.
	_, err := outbox.NewRegistry(in("billing", "changed"), in("chat", "changed"))
	if err == nil || !strings.Contains(err.Error(), "defined twice") {
		t.Errorf("one type in two namespaces: %v", err)
	}
}
