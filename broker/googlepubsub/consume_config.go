package googlepubsub

import (
	"cmp"
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
	// Concurrency is how many messages are handled at a time. Defaults to 16.
	Concurrency int
	// MaxOutstandingMessages is how many messages the loop has at a time: those that are handled, those that wait for
	// another one of their aggregate, and those that wait until they are tried again. An aggregate with a backlog can take
	// all of them, and then the others wait. More is not better: Pub/Sub counts a delivery of each of them when the loop
	// stops or its process dies, and other processes do not get what this one has. Defaults to ten times Concurrency.
	MaxOutstandingMessages int
	// MaxOutstandingBytes is how many bytes of messages the loop has at a time. A larger message comes alone. Defaults to
	// 64 MiB.
	MaxOutstandingBytes int
	// Streams is over how many streams messages come. Pub/Sub sends about 10 MB/s over one, and each may hold
	// MaxOutstandingMessages that the loop has not begun to look at. Defaults to 1.
	Streams int
	// Lease is for how long Pub/Sub gives a message to this process; the lease is renewed while the message is here.
	// When the process dies, its messages come to another one so much later. When Pub/Sub answers slowly, a short lease
	// ends before it is renewed, and a message comes again while it is being handled. Keep it longer than the consumer's
	// Deadline: then a lease that was not renewed in time is no matter, for all that is handled within it. From 10 to 600
	// seconds. Defaults to 60 seconds.
	Lease time.Duration
	// MaxExtension is for how long after its arrival a message's lease is renewed. A handler that hangs then has no more
	// claim to it: it comes again, here or elsewhere, and that is a delivery that counts. So does a message that has
	// waited for Redis or a database for so long. Keep it well above the consumer's Deadline. Defaults to an hour.
	MaxExtension time.Duration
	// FlushTimeout is how long the last acknowledgements may take when the loop stops. What they do not reach comes again.
	// Defaults to 5 seconds.
	FlushTimeout time.Duration
	// RetryPolicy says that the subscription has a retry policy, for a loop that may not ask: it needs the permission
	// pubsub.subscriptions.get, which roles/pubsub.subscriber has not. Where it may ask, Pub/Sub's answer counts. Defaults
	// to false: a message that failed is kept for a while before it is given back.
	RetryPolicy bool
	// DeadLetters is the topic to which the loop itself publishes what will never be handled, with the reason: an id in
	// the client's project, or a name in full. Defaults to none: the subscription's dead-letter policy does it.
	DeadLetters string
}

// What Pub/Sub takes as a lease.
const (
	shortestLease = 10 * time.Second
	longestLease  = 600 * time.Second
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
	errs = append(errs, c.limits()...)
	return c.filled(), errors.Join(errs...)
}

// limits says which numbers cannot be.
func (c ConsumeConfig) limits() (errs []error) {
	for name, number := range map[string]int64{
		"Concurrency": int64(c.Concurrency), "MaxOutstandingMessages": int64(c.MaxOutstandingMessages),
		"MaxOutstandingBytes": int64(c.MaxOutstandingBytes), "Streams": int64(c.Streams), "Lease": int64(c.Lease),
		"MaxExtension": int64(c.MaxExtension), "FlushTimeout": int64(c.FlushTimeout),
	} {
		if number < 0 {
			errs = append(errs, fmt.Errorf("googlepubsub: %s is negative: leave it at zero for the default", name))
		}
	}
	full := c.filled()
	if full.MaxOutstandingMessages < full.Concurrency {
		errs = append(errs, fmt.Errorf("googlepubsub: MaxOutstandingMessages is %d and Concurrency %d: it cannot be less",
			full.MaxOutstandingMessages, full.Concurrency))
	}
	if full.Lease < shortestLease || full.Lease > longestLease || full.Lease%time.Second != 0 {
		errs = append(errs, fmt.Errorf("googlepubsub: Lease is %s: use whole seconds, from %s to %s", full.Lease,
			shortestLease, longestLease))
	}
	if full.MaxExtension < full.Lease {
		errs = append(errs, fmt.Errorf("googlepubsub: MaxExtension is %s and Lease %s: it cannot be less",
			full.MaxExtension, full.Lease))
	}
	return errs
}

// filled has the defaults for what is zero.
func (c ConsumeConfig) filled() ConsumeConfig {
	c.Concurrency = cmp.Or(c.Concurrency, 16)
	c.MaxOutstandingMessages = cmp.Or(c.MaxOutstandingMessages, 10*c.Concurrency)
	c.MaxOutstandingBytes = cmp.Or(c.MaxOutstandingBytes, 64<<20)
	c.Streams = cmp.Or(c.Streams, 1)
	c.Lease = cmp.Or(c.Lease, time.Minute)
	c.MaxExtension = cmp.Or(c.MaxExtension, max(time.Hour, c.Lease))
	c.FlushTimeout = cmp.Or(c.FlushTimeout, 5*time.Second)
	return c
}

// settings are the client library's.
//
// What it does (v2.8.0), since everything in this package follows from it:
//
//   - It extends the deadline of a message from its arrival until it is acknowledged or given back, or MaxExtension is
//     over. It does so 5 seconds before a lease ends, and one goroutine of it sends acknowledgements and extensions in
//     turn, each when the one before is answered. So an answer that takes longer than 5 seconds can end the leases that
//     were to be extended then: of messages that have been here for almost a lease or longer. Of those that have not,
//     only one that takes about as long as a lease.
//   - Without a least extension it extends for as long as handling usually takes, which is 10 seconds at the start.
//     Then every answer that takes longer than 5 seconds ends all leases.
//   - A process that stands still for longer than a lease can get a copy of what it is handling.
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
		MaxExtension:               c.MaxExtension,
		MinDurationPerAckExtension: c.Lease,
		MaxDurationPerAckExtension: c.Lease,
		MaxOutstandingMessages:     c.MaxOutstandingMessages,
		MaxOutstandingBytes:        c.MaxOutstandingBytes,
		NumGoroutines:              c.Streams,
	}
}
