package googlepubsub

import (
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/pubsub/v2"
)

// PublisherConfig is how events are sent. The zero value is the production default.
type PublisherConfig struct {
	// Unordered sends without ordering keys: no order for subscribers, no limit of 1 MB/s per key, and messages of all
	// aggregates share requests, which costs less. [Publisher.Depth] is then 1, because nothing holds back what is behind
	// a failure. Defaults to false.
	Unordered bool

	// UnorderedTopics are those that are Unordered, where the others are not. One message of an aggregate is sent to them
	// at a time. Defaults to none.
	UnorderedTopics []string

	// Depth is how many messages of one key may be in flight. Defaults to 100.
	Depth int

	// Timeout bounds each request of the client library. It begins when the request leaves, not when the
	// message is handed over, and the caller's context does not shorten it; keep it below the relay's
	// publish deadline, so that a request is over when the relay gives its event up. Defaults to 8 seconds:
	// the relay's default deadline is 10.
	Timeout time.Duration

	// DelayThreshold is how long a message waits for others to share its request. It is the floor of the
	// latency. Defaults to 1 millisecond; the library's own default is 10.
	DelayThreshold time.Duration

	// Compression has requests of more than 240 bytes compressed on their way: less traffic for more processor time.
	// What Pub/Sub stores and bills is the same. Defaults to false.
	Compression bool

	// CountThreshold is how many messages a request has at most, up to 1000. Defaults to 100.
	CountThreshold int

	// ByteThreshold is at how many bytes a request leaves without waiting for more. Defaults to 1,000,000.
	ByteThreshold int

	// MaxOutstandingMessages is how many messages of one topic the library holds; one more waits. Defaults
	// to 1000.
	MaxOutstandingMessages int

	// MaxOutstandingBytes is how many bytes of one topic the library holds; one more waits. Defaults to
	// 64 MiB.
	MaxOutstandingBytes int
}

// withDefaults fills the zero fields and reports everything that is wrong at once.
func (c PublisherConfig) withDefaults() (PublisherConfig, error) {
	for _, field := range []struct {
		value  *int
		preset int
	}{
		{&c.Depth, 100},
		{&c.CountThreshold, 100},
		{&c.ByteThreshold, 1_000_000},
		{&c.MaxOutstandingMessages, 1000},
		{&c.MaxOutstandingBytes, 64 << 20},
	} {
		if *field.value == 0 {
			*field.value = field.preset
		}
	}
	if c.Timeout == 0 {
		c.Timeout = 8 * time.Second
	}
	if c.DelayThreshold == 0 {
		c.DelayThreshold = time.Millisecond
	}
	return c, c.validate()
}

func (c PublisherConfig) validate() error {
	var errs []error
	for _, field := range []struct {
		name  string
		value int64
	}{
		{"Depth", int64(c.Depth)},
		{"Timeout", int64(c.Timeout)},
		{"DelayThreshold", int64(c.DelayThreshold)},
		{"CountThreshold", int64(c.CountThreshold)},
		{"ByteThreshold", int64(c.ByteThreshold)},
		{"MaxOutstandingMessages", int64(c.MaxOutstandingMessages)},
		{"MaxOutstandingBytes", int64(c.MaxOutstandingBytes)},
	} {
		if field.value < 0 {
			errs = append(errs, fmt.Errorf("googlepubsub: %s is negative: leave it at zero for the default", field.name))
		}
	}
	if c.CountThreshold > pubsub.MaxPublishRequestCount {
		errs = append(errs, fmt.Errorf("googlepubsub: CountThreshold is %d: Pub/Sub takes at most %d messages in a request",
			c.CountThreshold, pubsub.MaxPublishRequestCount))
	}
	if c.DelayThreshold >= c.Timeout && c.Timeout > 0 {
		errs = append(errs,
			errors.New("googlepubsub: DelayThreshold is not below Timeout: messages wait that long before they are sent"))
	}
	for _, topic := range c.UnorderedTopics {
		if err := checkTopicName(topic); err != nil {
			errs = append(errs, fmt.Errorf("googlepubsub: UnorderedTopics: %w", err))
		}
	}
	return errors.Join(errs...)
}

// settings are the library's.
func (c PublisherConfig) settings() pubsub.PublishSettings {
	settings := pubsub.DefaultPublishSettings
	settings.DelayThreshold = c.DelayThreshold
	settings.CountThreshold = c.CountThreshold
	settings.ByteThreshold = c.ByteThreshold
	settings.Timeout = c.Timeout
	settings.EnableCompression = c.Compression
	// The library would have 25 requests of a topic under way for each processor, and others wait for them before their
	// time begins. It is only a count.
	settings.NumGoroutines = c.MaxOutstandingMessages
	// The library's default counts and then ignores what it counted, so a slow broker fills the memory.
	settings.FlowControlSettings = pubsub.FlowControlSettings{
		MaxOutstandingMessages: c.MaxOutstandingMessages,
		MaxOutstandingBytes:    c.MaxOutstandingBytes,
		LimitExceededBehavior:  pubsub.FlowControlBlock,
	}
	return settings
}
