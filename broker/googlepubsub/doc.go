// Package googlepubsub publishes events to Google Cloud Pub/Sub. It implements [relay.Publisher] and
// [relay.Pipeliner].
//
// An event's aggregate is its ordering key, so a subscription that asks for order gets the events of one
// aggregate in order, and up to [Config.Depth] of them are in flight at a time. When one fails, all that
// were handed over behind it fail with [ErrBehindFailure], and the key goes on when the failed event, or
// one that was behind it, is handed over again and the client library holds nothing of the key any more.
// Other keys do not notice.
//
// Promises: nil means that Pub/Sub has the message. An error behind which nobody knows is never told as
// anything else. No message is refused because of another one that shared its request. What one event did
// is never told of the topic, and what the topic did is never told of one event.
//
// Not promised: that a message whose context ended is not accepted later. The client library sends without
// the caller's context; [Config.Timeout] bounds each of its requests.
//
// The client is the caller's: made with his credentials, closed by him. Google's client verifies the
// server's certificate by itself, and talks to an emulator without TLS when PUBSUB_EMULATOR_HOST says so.
// Leave its tracing off: it writes attributes of its own into messages.
package googlepubsub
