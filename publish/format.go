package publish

// Format is how the messages of a topic look. Whatever it is, the body is the stored envelope, byte for byte, and the
// attributes that [Message] lists are there.
type Format string

const (
	// Envelope has no more than that.
	Envelope Format = "envelope"
	// CloudEvents adds the attributes of CloudEvents 1.0 in binary mode, named as the bindings of NATS and Pub/Sub name
	// them: ce-id, ce-source, ce-type, ce-subject and so on. A publisher whose binding has other names, as Kafka's has,
	// translates. The event's data, in the words of CloudEvents, is the
	// envelope.
	CloudEvents Format = "cloudevents"
)

// Formats lists all of them.
func Formats() []Format { return []Format{Envelope, CloudEvents} }
