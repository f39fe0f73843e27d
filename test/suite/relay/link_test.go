package relay

import (
	"fmt"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/test/kit/proxy"
)

// Large events of one lane, behind a link that carries a few of them in the time of a statement: all of them are
// published, and so is what is in other lanes.
func TestLargeEventsBehindASlowLink(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		const large, size, small = 40, 256 << 10, 100
		text := strings.Repeat("x", size)
		for i := range large {
			p.emit(t, placed.New("large", note{N: i, Text: text}))
		}
		var events []outbox.Event
		for i := range small {
			events = append(events, placed.New(fmt.Sprint("small-", i), note{N: i}))
		}
		p.emit(t, events...)
		x := proxy.New(t, p.URL)
		x.Limit(5 * size)
		p.start(t, "behind", through(t, x), with(func(s *relay.Settings) { s.Batch = 1000 }))
		p.awaitPublished(t, large+small)
		if x.TooLong() == 0 {
			t.Error("no answer was too long for the link")
		}
		p.wantDelivered(t)
		p.wantInOrder(t)
	})
}
