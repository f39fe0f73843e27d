package pubsubemulator

import (
	"strings"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// The limits of the service, from https://cloud.google.com/pubsub/quotas#resource_limits.
const (
	maxMessages            = 1000
	maxRequestBytes        = 10_000_000
	maxKeyBytes            = 1024
	maxAttributes          = 100
	maxAttributeNameBytes  = 256
	maxAttributeValueBytes = 1024
	// reservedPrefix begins the names of attributes that are Google's, but for those that its client libraries set.
	reservedPrefix, clientPrefix = "goog", "googclient_"
)

// checkPublish refuses what the service refuses: the whole request, for one message that is wrong.
func checkPublish(req *pb.PublishRequest) error {
	messages := req.GetMessages()
	switch size := proto.Size(req); {
	case len(messages) == 0:
		return invalid("The value for message_count is too small. You passed 0 in the request, but the minimum value is 1.")
	case len(messages) > maxMessages:
		return invalid("The value for message_count is too large. You passed %d in the request, but the maximum value is %d.",
			len(messages), maxMessages)
	case size > maxRequestBytes:
		return invalid("The value for request_size is too large. You passed %d in the request, but the maximum value is %d.",
			size, maxRequestBytes)
	}
	for _, m := range messages {
		if m.GetOrderingKey() != messages[0].GetOrderingKey() {
			return status.Error(codes.FailedPrecondition, "In a single publish request, all messages must have no ordering"+
				" key or they must all have the same ordering key. [code=539b]")
		}
		if err := checkMessage(m); err != nil {
			return err
		}
	}
	return nil
}

func checkMessage(m *pb.PubsubMessage) error {
	switch {
	case len(m.GetData()) == 0 && len(m.GetAttributes()) == 0:
		return invalid("Some messages are empty: each needs either data or an attribute.")
	case len(m.GetOrderingKey()) > maxKeyBytes:
		return invalid("An ordering key has %d bytes, but the maximum allowed is %d.", len(m.GetOrderingKey()), maxKeyBytes)
	case len(m.GetAttributes()) > maxAttributes:
		return invalid("A message has %d attributes, but the maximum allowed is %d.", len(m.GetAttributes()), maxAttributes)
	}
	for name, value := range m.GetAttributes() {
		switch {
		case name == "":
			return invalid("An attribute has no key.")
		case strings.HasPrefix(name, reservedPrefix) && !strings.HasPrefix(name, clientPrefix):
			return invalid("The attribute key %.32q begins with %q, which is reserved.", name, reservedPrefix)
		case len(name) > maxAttributeNameBytes:
			return invalid("An attribute in the request has a key that is too long. The length is %d characters, but the"+
				" maximum allowed is %d.", len(name), maxAttributeNameBytes)
		case len(value) > maxAttributeValueBytes:
			return invalid("The attribute %q in the request has a value that is too long. The length is %d characters, but"+
				" the maximum allowed is %d.", name, len(value), maxAttributeValueBytes)
		}
	}
	return nil
}

func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}
