// Package googlepubsub publishes events to Google Cloud Pub/Sub, and consumes them: [NewPublisher] makes the publisher
// of a relay, a [publish.Pipeliner], and [Consume] receives a subscription's messages and has a [consumer.Consumer]
// handle them.
//
// # Publishing
//
// An event's aggregate is its ordering key, so a subscription that asks for order gets the events of one
// aggregate in order, and up to [PublisherConfig.Depth] of them are in flight at a time. When one fails, all that
// were handed over behind it fail with [ErrBehindFailure], and the key goes on when the failed event, or
// one that was behind it, is handed over again and the client library holds nothing of the key any more.
// Other keys do not notice.
//
// Promises: nil means that Pub/Sub has the message. [publish.ErrNotSent] means that this one was not sent, or that one
// of its key before it failed. A [publish.TopicError] leaves it open: an outage of all keys or of some, a deadline that
// passed, an answer that was lost. None of that is an event's fault, and the relay sends it again until it passes, as
// Google's own clients do. No message is refused because of another one that shared its request. What one event did is
// never told of the topic, and what the topic did is never told of one event. What was given up is not sent any more,
// unless its request is under way.
//
// Not promised: that a message whose context ended is not accepted later. The client library sends without
// the caller's context: a request that is under way may deliver it for [PublisherConfig.Timeout] more, and what Pub/Sub
// has received when the client gives up it may still carry out, behind newer events.
//
// The client is the caller's: made with their credentials, closed by them. Google's client verifies the
// server's certificate by itself, and talks to an emulator without TLS when PUBSUB_EMULATOR_HOST says so.
// Leave its tracing off: it sends attributes of its own with the message.
//
// # Consuming
//
// compliance, err := consumer.New(consumer.Config{Name: "compliance"}, consumer.On(events.LicenseStatusChanged,
// handle))
//
//	...
//	err = googlepubsub.Consume(ctx, client, compliance, googlepubsub.ConsumeConfig{Subscription: "compliance"})
//
// Promises: a message is acknowledged only when it is handled, is known to have been, is of a type that consumer.Ignore
// names, or is among the dead letters. An outage of Pub/Sub and a subscription that is missing are waited for.
//
// While a message is being handled it is this loop's, for up to [ConsumeConfig.MaxExtension], as long as neither the
// process nor Pub/Sub's answers stand still for about a [ConsumeConfig.Lease]. When the process dies, its messages
// come to another one a lease later.
//
// Not promised: that a message comes once, or that one that was acknowledged does not come again. After a lease that
// has ended two processes can have the same message; the inbox knows the second.
//
// # Order
//
// The events of one aggregate have the same ordering key. A subscription with message ordering sends them in order, and
// they are handled one after the other. When one fails, those of its aggregate that had been received behind it are
// handled before it comes again, and Pub/Sub then sends them again, the acknowledged ones too: inbox.Newer keeps
// state from going backwards. Those that had not been received wait until it is handled or a dead letter.
//
// # Dead letters
//
// Give the subscription a dead-letter policy. Pub/Sub then counts the deliveries, those that killed the process too,
// and after max_delivery_attempts it moves the message to the policy's topic; the loop only refuses it. Pub/Sub's
// service account must be allowed to publish to that topic and to subscribe to the subscription, or nothing is ever
// moved. What will never be handled is refused max_delivery_attempts times too, with the retry policy's pauses in
// between: 40 minutes with 10 attempts and pauses from 10 to 600 seconds. What a stop gives back counts as delivered,
// and so does what a process had when it died: up to [ConsumeConfig.MaxOutstandingMessages].
//
// [ConsumeConfig.DeadLetters] is for who cannot have a policy, or wants to read in the dead letter why it is one: the
// loop publishes it there by itself, at once, and acknowledges it when that topic has it. It may be there twice: the
// client retries the request. Without a policy the loop counts the attempts, and keeps a failing message for itself
// between them.
//
// With neither, what cannot be handled comes again every minute until it is older than the subscription's retention,
// and then it is gone. [CheckSubscription] says so.
//
// # Retries
//
// With a retry policy a failed message is given back at once and Pub/Sub decides when it comes again. Without one
// Pub/Sub would send it again at once, so the loop holds it for a while first, as one of
// [ConsumeConfig.MaxOutstandingMessages]. A loop that may not ask whether there is a policy, for want of the permission
// pubsub.subscriptions.get, holds it too, unless [ConsumeConfig.RetryPolicy] says that there is one.
//
// # The client
//
// Make it with grpc.WithConnectParams, as in the example: gRPC itself waits up to two minutes before it tries to
// connect again, which adds to every outage. Leave the client's tracing off, and use that of telemetry/otel.
//
// The client opens a stream that broke again by itself, and tells nobody. Whether a consumer keeps up is seen at the
// subscription: watch the age of its oldest message that is not acknowledged.
package googlepubsub
