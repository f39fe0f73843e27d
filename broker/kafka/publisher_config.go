package kafka

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// PublisherConfig is how events are sent. The zero value is the production default.
type PublisherConfig struct {
	// Prefix stands before the topic of an event in the name of the topic of Kafka, for instance "shop.". Defaults to
	// none.
	Prefix string
	// Depth is how many messages of one key may be in flight. Defaults to 100.
	Depth int
	// Timeout is how long a broker may take until enough replicas have a batch. Keep it below the relay's publish
	// deadline, so that the broker has answered when the relay gives its event up. Defaults to 8 seconds: the relay's
	// default deadline is 10.
	Timeout time.Duration
	// MaxMessageBytes is how large a message may be with its key and its headers, before it is compressed. The
	// topic's own limit, max.message.bytes, counts where it is smaller and the client may read it. Defaults to the
	// topic's limit, or to 1,048,588, which is Kafka's own default, where that may not be read.
	MaxMessageBytes int
	// Compression is none, gzip, snappy, lz4 or zstd. Defaults to snappy.
	Compression string
	// ContinueAfterDataLoss goes on when a broker has lost what it had acknowledged. Otherwise the topic takes nothing
	// more until the publisher is made anew, so that somebody looks first. Defaults to false.
	ContinueAfterDataLoss bool
}

// defaultMaxMessageBytes is Kafka's own limit where nobody has set one.
const defaultMaxMessageBytes = 1_048_588

// leastMaxMessageBytes leaves room for the attributes that every event has.
const leastMaxMessageBytes = 1_024

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

// Compressions are the values that [PublisherConfig.Compression] can have.
func Compressions() []string { return slices.Sorted(maps.Keys(codecs)) }

// withDefaults fills the zero fields and reports everything that is wrong at once.
func (c PublisherConfig) withDefaults() (PublisherConfig, error) {
	if c.Depth == 0 {
		c.Depth = 100
	}
	if c.Timeout == 0 {
		c.Timeout = 8 * time.Second
	}
	if c.Compression == "" {
		c.Compression = "snappy"
	}
	return c, c.validate()
}

func (c PublisherConfig) validate() error {
	var problems []error
	wrong := func(is bool, what string) {
		if is {
			problems = append(problems, errors.New("kafka: "+what))
		}
	}
	wrong(c.Depth < 0, "Depth must not be negative")
	wrong(c.Timeout < 0, "Timeout must not be negative")
	wrong(c.MaxMessageBytes != 0 && c.MaxMessageBytes < leastMaxMessageBytes,
		fmt.Sprintf("MaxMessageBytes is %d: an event does not fit into less than %d", c.MaxMessageBytes,
			leastMaxMessageBytes))
	if _, known := codecs[c.Compression]; !known {
		wrong(true, fmt.Sprintf("Compression %.20q: it is one of %s", c.Compression, strings.Join(Compressions(), ", ")))
	}
	if c.Prefix != "" {
		if err := CheckTopic(c.Prefix + "topic"); err != nil {
			problems = append(problems, fmt.Errorf("kafka: Prefix: %w", err))
		}
	}
	return errors.Join(problems...)
}

var topicName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`)

// CheckTopic refuses what no topic of Kafka can be named, as [Publisher.Publish] does.
func CheckTopic(name string) error {
	if !topicName.MatchString(name) || name == "." || name == ".." {
		return fmt.Errorf("%.80q cannot be a topic: use 1 to 249 letters, digits and . _ -", name)
	}
	return nil
}
