package natsjetstream

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/posthaste-dev/posthaste/publish"
)

// PublisherConfig says how messages become messages of JetStream. Its zero value is the production default.
type PublisherConfig struct {
	// Subject makes the subject of a message. Defaults to Prefix and the topic.
	Subject func(message *publish.Message) string
	// Prefix stands before the topic in the default subject, for instance "events.". Defaults to none.
	Prefix string
	// Stream names the stream that must take the messages; a message that another stream would take is
	// refused. Defaults to whichever stream has the subject.
	Stream string
	// Streams names the stream by topic, for topics that are not in Stream. Defaults to none.
	Streams map[string]string
	// MaxPending is how many messages may wait for their acknowledgement; a publish waits for room.
	// Defaults to 4096.
	MaxPending int
	// AckTimeout is when an acknowledgement that nobody waits for any more is forgotten. It must be
	// longer than the relay's publish deadline. Defaults to 1 minute.
	AckTimeout time.Duration
}

func (c PublisherConfig) withDefaults() PublisherConfig {
	if c.Subject == nil {
		prefix := c.Prefix
		c.Subject = func(message *publish.Message) string { return prefix + message.Topic }
	}
	if c.MaxPending == 0 {
		c.MaxPending = 4096
	}
	if c.AckTimeout == 0 {
		c.AckTimeout = time.Minute
	}
	return c
}

// validate says everything that is wrong with the configuration.
func (c PublisherConfig) validate() error {
	var problems []error
	if c.MaxPending < 0 {
		problems = append(problems, errors.New("natsjetstream: MaxPending must not be negative"))
	}
	if c.AckTimeout < 0 {
		problems = append(problems, errors.New("natsjetstream: AckTimeout must not be negative"))
	}
	if c.Prefix != "" && c.Subject != nil {
		problems = append(problems,
			errors.New("natsjetstream: Subject makes whole subjects: set Prefix or Subject, not both"))
	}
	if c.Prefix != "" {
		if err := CheckSubject(c.Prefix + "topic"); err != nil {
			problems = append(problems, fmt.Errorf("natsjetstream: Prefix %q: %w", c.Prefix, err))
		}
	}
	for topic, stream := range c.Streams {
		if stream == "" {
			problems = append(problems, fmt.Errorf("natsjetstream: Streams[%q] is empty", topic))
		}
	}
	return errors.Join(problems...)
}

// stream is the stream that must take messages of a topic, or "".
func (c PublisherConfig) stream(topic string) string {
	if stream, ok := c.Streams[topic]; ok {
		return stream
	}
	return c.Stream
}

// commands begin the subjects on which servers take commands and answer: who may choose a topic must not administer
// streams with it.
var commands = []string{"$JS", "$SYS", "_INBOX"}

// CheckSubject refuses what is no subject to publish to, as [Publisher.Publish] does: the client would send it, and the
// server would match it with nothing, or close the connection under everybody's messages.
func CheckSubject(subject string) error {
	if strings.ContainsFunc(subject, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return errors.New("a subject has no spaces and no control characters")
	}
	if first, _, _ := strings.Cut(subject, "."); slices.Contains(commands, first) {
		return fmt.Errorf("subjects that begin with %s are the server's own: a message there would be a command", first)
	}
	for token := range strings.SplitSeq(subject, ".") {
		switch token {
		case "":
			return errors.New("a subject has no empty part: not at its ends, and not between two dots")
		case "*", ">":
			return errors.New("a subject to publish to has no wildcard")
		}
	}
	return nil
}
