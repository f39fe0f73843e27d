package googlepubsub

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/posthaste-dev/posthaste/publish"
)

// The limits of the service. They are checked before anything is sent: the service would refuse the whole
// request, and with it messages that nothing is wrong with, and the library pauses the key.
const (
	maxKeyBytes            = 1024
	maxAttributes          = 100
	maxAttributeNameBytes  = 256
	maxAttributeValueBytes = 1024
	reserved               = "goog"
)

// topicName is an id, or a name in full. The service refuses others with INVALID_ARGUMENT, which would be
// charged to the message.
var topicName = regexp.MustCompile(`^(projects/[^/]+/topics/)?[A-Za-z][A-Za-z0-9._~+%-]{2,254}$`)

func checkTopicName(name string) error {
	if topicName.MatchString(name) {
		return nil
	}
	return fmt.Errorf("%q cannot be a topic: use an id of 3 to 255 letters, digits and - . _ ~ + %%, or "+
		"projects/P/topics/ID", name)
}

// orderingKey is the aggregate, or its hash where Pub/Sub has no room for it or could not carry it.
func (t *topic) orderingKey(key string) string {
	switch {
	case t.unordered:
		return ""
	case len(key) <= maxKeyBytes && utf8.ValidString(key):
		return key
	default:
		hash := sha256.Sum256([]byte(key))
		return "sha256:" + hex.EncodeToString(hash[:])
	}
}

// check refuses a message that Pub/Sub can never take.
func (t *topic) check(message *publish.Message) error {
	if err := checkAttributes(message.Attributes); err != nil {
		return &publish.TerminalError{Reason: publish.ReasonRejected, Err: fmt.Errorf("googlepubsub: %w", err)}
	}
	if size := t.size(message); size > t.maxSize {
		return &publish.TerminalError{Reason: publish.ReasonTooLarge, Err: fmt.Errorf(
			"googlepubsub: the message has %d bytes with its attributes, and Pub/Sub takes at most %d", size, t.maxSize)}
	}
	return nil
}

func checkAttributes(attributes map[string]string) error {
	if len(attributes) > maxAttributes {
		return fmt.Errorf("the message has %d attributes, and Pub/Sub takes at most %d", len(attributes), maxAttributes)
	}
	for name, value := range attributes {
		switch {
		case name == "":
			return errors.New("an attribute has no name")
		case strings.HasPrefix(name, reserved):
			return fmt.Errorf("the name of attribute %.32q begins with %s, which Pub/Sub keeps for itself", name, reserved)
		case len(name) > maxAttributeNameBytes:
			return fmt.Errorf("the name of attribute %.32q... has %d bytes, and Pub/Sub takes at most %d", name, len(name),
				maxAttributeNameBytes)
		case len(value) > maxAttributeValueBytes:
			return fmt.Errorf("attribute %q has %d bytes, and Pub/Sub takes at most %d", name, len(value),
				maxAttributeValueBytes)
		case !utf8.ValidString(name) || !utf8.ValidString(value):
			return fmt.Errorf("attribute %.32q is not UTF-8", name)
		}
	}
	return nil
}

// maxMessageSize is what the library leaves for one message of the 10,000,000 bytes of a request.
func maxMessageSize(topic string) int {
	return pubsub.MaxPublishRequestBytes - (protowire.SizeTag(1) + protowire.SizeBytes(len(topic))) - 5
}

// size is what the library counts of a message. It counts exactly only what may be too large.
func (t *topic) size(message *publish.Message) int {
	const overhead = 16 // of an attribute, tags and lengths; there are few bytes more around the body
	rough := 4*overhead + len(message.Body) + min(len(message.Key), maxKeyBytes)
	for name, value := range message.Attributes {
		rough += overhead + len(name) + len(value)
	}
	if rough <= t.maxSize {
		return rough
	}
	return proto.Size(&pubsubpb.PubsubMessage{
		Data: message.Body, Attributes: message.Attributes, OrderingKey: t.orderingKey(message.Key),
	})
}
