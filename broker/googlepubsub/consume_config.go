package googlepubsub

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"cloud.google.com/go/pubsub/v2"

	"github.com/posthaste-dev/posthaste/consumer"
)

// ConsumeConfig says what is received and how. Only Subscription has no default.
type ConsumeConfig struct {
	// Subscription is an id in the client's project, or a name in full: "projects/p/subscriptions/s".
	Subscription string
	// Concurrency is how many messages the loop has at a time: those that are handled, and those that wait for another one
	// of their aggregate. Not more, because Pub/Sub counts a delivery for what a stop gives back. Defaults to 16.
	Concurrency int
	// DeadLetters is the topic to which the loop itself publishes what will never be handled, with the reason: an id in
	// the client's project, or a name in full. Defaults to none: the subscription's dead-letter policy does it.
	DeadLetters string
}

const (
	// maxBytes is how many bytes of messages the client library holds. One that is larger is held alone.
	maxBytes = 64 << 20
	// maxExtension is for how long a message stays this loop's: no subscription keeps one longer.
	maxExtension = 31 * 24 * time.Hour
	// lease is how late a message comes to another process when the one that had it has died: the shortest that there is.
	lease = 10 * time.Second
)

var subscriptionName = regexp.MustCompile(`^(projects/[^/]+/subscriptions/)?[A-Za-z][A-Za-z0-9._~+%-]{2,254}$`)

// withDefaults fills the zero fields and reports everything that is wrong at once.
func (c ConsumeConfig) withDefaults(client *pubsub.Client, handler *consumer.Consumer) (ConsumeConfig, error) {
	var errs []error
	if client == nil {
		errs = append(errs, errors.New("googlepubsub: no client: make one with pubsub.NewClient"))
	}
	if handler == nil {
		errs = append(errs, errors.New("googlepubsub: no consumer: make one with consumer.New"))
	}
	if !subscriptionName.MatchString(c.Subscription) {
		errs = append(errs, fmt.Errorf("googlepubsub: Subscription is %.300q: use an id of 3 to 255 letters, digits and - "+
			". _ ~ + %%, or projects/P/subscriptions/ID", c.Subscription))
	}
	if c.DeadLetters != "" && !topicName.MatchString(c.DeadLetters) {
		errs = append(errs, fmt.Errorf("googlepubsub: DeadLetters is %.300q: use an id of 3 to 255 letters, digits and - . "+
			"_ ~ + %%, or projects/P/topics/ID", c.DeadLetters))
	}
	if c.Concurrency < 0 {
		errs = append(errs, errors.New("googlepubsub: Concurrency is negative: leave it at zero for the default"))
	}
	if c.Concurrency == 0 {
		c.Concurrency = 16
	}
	return c, errors.Join(errs...)
}

// settings are the client library's.
//
// What it does (v2.8.0), since everything in this package follows from it:
//
//   - It extends the deadline of a message from its arrival until it is acknowledged or given back, or MaxExtension is
//     over. It does so 5 seconds ahead, for as long as handling usually takes, up to 10 minutes, unless told otherwise.
//     A process that stands still for longer than a lease can get a copy of what it is handling.
//   - It runs the callbacks of one ordering key one after the other, in the order in which messages came, whatever the
//     callback did with the one before.
//   - It opens a stream that broke again by itself, forever, if the code looks like an outage; for other codes Receive
//     returns. What was to be acknowledged at that moment is forgotten, and comes again.
//   - When the context ends, Receive runs the callbacks of what waits for its ordering key all the same, waits until
//     all are through, sends the last acknowledgements, and then closes the stream: which waits for a stream that is
//     being opened, and so for the end of an outage. What Pub/Sub sends until then, nobody reads, and it is late by a
//     lease. With a timeout in ShutdownOptions the stream is closed first, and the last acknowledgements are forgotten.
func (c ConsumeConfig) settings() pubsub.ReceiveSettings {
	return pubsub.ReceiveSettings{
		MaxExtension:               maxExtension,
		MaxDurationPerAckExtension: lease,
		MaxOutstandingMessages:     c.Concurrency,
		MaxOutstandingBytes:        maxBytes,
		NumGoroutines:              1,
	}
}
