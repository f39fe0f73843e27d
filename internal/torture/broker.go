package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
)

// stage is the broker's side of a run: topics that only this run uses, and the recorder of what arrives there.
type stage interface {
	// arrivals is how many messages have arrived.
	arrivals(ctx context.Context) (uint64, error)
	// deliveries returns all messages in the order of their arrival, and when each came, in microseconds. It is
	// called once, when no relay publishes any more. Published are the events that the broker must have.
	deliveries(ctx context.Context, published []outbox.ID) ([]check.Delivery, []int64, error)
	// close removes the topics and leaves.
	close(ctx context.Context) error
	// leave sees no more.
	leave() error
}

// broker is a kind of broker.
type broker struct {
	// open makes the topics of a run.
	open func(ctx context.Context, address *url.URL, run string, topics []string) (stage, error)
	// publisher is what the relays of the run publish with, and how to close it. Deadline is that of one publish.
	publisher func(ctx context.Context, address *url.URL, run string,
		deadline time.Duration) (publish.Publisher, func() error, error)
	// pipelined tells that relays have several events of an aggregate in flight.
	pipelined bool
}

// brokers are the kinds there are, by the scheme of their addresses.
var brokers = map[string]broker{
	"nats":   {open: openNATS, publisher: natsPublisher},
	"tls":    {open: openNATS, publisher: natsPublisher}, // NATS as well
	"pubsub": {open: openPubSub, publisher: pubSubPublisher, pipelined: true},
}

func brokerAt(address string) (broker, *url.URL, error) {
	at, err := url.Parse(address)
	if err != nil {
		return broker{}, nil, fmt.Errorf("torture: the broker's address: %w", err)
	}
	b, known := brokers[at.Scheme]
	if !known {
		return broker{}, nil, fmt.Errorf("torture: the broker's address %q begins with none of the schemes that are known: "+
			"nats, tls, pubsub", address)
	}
	return b, at, nil
}

// reserved are the attributes that every message has besides the event's own headers.
var reserved = map[string]bool{
	"redelivered": true,
	"event_id":    true, "event_type": true, "namespace": true, "aggregate_type": true, "aggregate_id": true,
	"created_at": true, "tenant_id": true, "dedupe_key": true, "outbox_seq": true,
}

// sumOfHeaders is the sum of an event's own headers, whatever they travelled in.
func sumOfHeaders(headers map[string]string) check.Sum {
	if len(headers) == 0 {
		return check.Sum{}
	}
	text, _ := json.Marshal(headers) // sorted by name
	return check.SumOf(text)
}

// requestOf is the request that a message is a copy for, as its attribute says; zero: it is the event itself.
func requestOf(attribute string) int64 {
	request, _ := strconv.ParseInt(attribute, 10, 64) // what is no number is nobody's request
	return request
}
