package googlepubsub

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"unicode/utf8"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/proto"

	"github.com/posthaste-dev/posthaste/publish"
)

// FuzzHeaderEncode: what passes the check is within the limits of the service and comes back from the wire as it was,
// key included; and what does not is the event's own fault.
func FuzzHeaderEncode(f *testing.F) {
	for _, seed := range []string{
		"", "h", "googclient_x", "\xff", "κλειδί", "a\r\nb: c", strings.Repeat("n", 256), strings.Repeat("n", 257),
	} {
		f.Add(seed, "v", "order/1", uint8(1))
		f.Add("h", seed, "order/"+seed, uint8(100))
		f.Add("h", strings.Repeat("v", 1024), seed, uint8(101))
		f.Add("h", strings.Repeat("v", 1025), strings.Repeat("k", 1025), uint8(0))
	}
	line := &topic{maxSize: maxMessageSize("projects/p/topics/t")}
	f.Fuzz(func(t *testing.T, name, value, key string, more uint8) {
		message := &publish.Message{Key: key, Body: []byte("{}"), Attributes: map[string]string{name: value}}
		for i := range more {
			message.Attributes["more"+string(rune('a'+i%26))+string(rune('a'+i/26))] = value
		}
		if err := line.check(message); err != nil {
			terminal := (*publish.TerminalError)(nil)
			if !errors.As(err, &terminal) || !utf8.ValidString(err.Error()) || strings.ContainsAny(err.Error(), "\r\n") {
				t.Fatalf("refused, and not as it should be: %q", err)
			}
			return
		}
		ordering := line.orderingKey(key)
		if len(message.Attributes) > 100 || len(name) > 256 || name == "" || len(value) > 1024 ||
			strings.HasPrefix(name, "goog") || len(ordering) > 1024 {
			t.Fatalf("%q: %q is not within the limits", name, value)
		}
		sent := &pubsubpb.PubsubMessage{Data: message.Body, Attributes: message.Attributes, OrderingKey: ordering}
		wire, err := proto.Marshal(sent)
		if err != nil {
			t.Fatal(err)
		}
		var got pubsubpb.PubsubMessage
		if err := proto.Unmarshal(wire, &got); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(got.GetAttributes(), message.Attributes) || got.GetOrderingKey() != ordering {
			t.Fatalf("%q: %q came back as %v", name, value, got.GetAttributes())
		}
		if size := line.size(message); size < len(wire) {
			t.Fatalf("counted %d bytes of %d", size, len(wire))
		}
	})
}
