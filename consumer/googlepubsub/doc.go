// Package googlepubsub is the loop of a consumer of Google Cloud Pub/Sub: it receives a subscription's messages, lets a
// [consumer.Consumer] handle them, and acknowledges those that are handled.
//
//	compliance, err := consumer.New(consumer.Config{Name: "compliance"}, consumer.On(events.LicenseStatusChanged, handle))
//	...
//	err = googlepubsub.Run(ctx, client, compliance, googlepubsub.Config{Subscription: "compliance"})
//
// Promises: a message is acknowledged only when it is handled, is known to have been, is of a type that consumer.Ignore
// names, or is among the dead letters. While it is being handled it is this loop's, however long that takes. An outage of Pub/Sub
// and a subscription that is missing are waited for.
//
// Not promised: that a message comes once, or that one that was acknowledged does not come again.
//
// # Order
//
// The events of one aggregate have the same ordering key. A subscription with message ordering sends them in order, and
// they are handled one after the other. When one fails, those of its aggregate that had been received behind it are
// handled before it comes again, and Pub/Sub then sends them again too: inbox.Newer keeps state from going backwards.
//
// # Dead letters
//
// Give the subscription a dead-letter policy. Pub/Sub then counts the deliveries, those that killed the process too, and
// after max_delivery_attempts it moves the message to the policy's topic; the loop only refuses it. Pub/Sub's service
// account must be allowed to publish to that topic and to subscribe to the subscription, or nothing is ever moved.
//
// [Config.DeadLetters] is for who cannot have a policy, or wants to read in the dead letter why it is one: the loop
// publishes it there by itself and acknowledges it when that topic has it. Without a policy the loop counts the attempts,
// and keeps a failing message for itself between them.
//
// With neither, what cannot be handled comes again every minute until it is older than the subscription's retention, and
// then it is gone. [Check] says so.
//
// # Retries
//
// With a retry policy a failed message is given back at once and Pub/Sub decides when it comes again. Without one
// Pub/Sub would send it again at once, so the loop holds it for a while first, and it takes one of the places that
// [Config.Concurrency] gives.
//
// # The client
//
// Make it with grpc.WithConnectParams, as in the example: gRPC itself waits up to two minutes before it tries to connect
// again, which adds to every outage. Leave the client's tracing off, and use that of telemetry/otel.
//
// The client opens a stream that broke again by itself, and tells nobody. Whether a consumer keeps up is seen at the
// subscription: watch the age of its oldest message that is not acknowledged.
package googlepubsub
