// Package natsjetstream publishes events to NATS JetStream, and consumes them: [NewPublisher] makes the publisher of a
// relay, and [Consume] is the loop around [consumer.Consumer.Process].
//
// # Publishing
//
// The subject of a message comes from its topic, the message id that JetStream deduplicates by is the
// event's id, and the attributes are headers. A publish is done when the stream has acknowledged it.
//
// JetStream takes what comes behind a message that it refused, so the publisher is no publish.Pipeliner:
// each aggregate has one message in flight.
//
// # Consuming
//
//	conn, err := nats.Connect(servers, nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true))
//	// ...
//	js, err := jetstream.New(conn)
//	// ...
//	_, err = js.CreateOrUpdateConsumer(ctx, "EVENTS", natsjetstream.PullConsumer(compliance, "events.licenses"))
//	// ...
//
// err = natsjetstream.Consume(ctx, js, compliance, natsjetstream.ConsumeConfig{Stream: "EVENTS", DeadLetters:
// "dead.compliance"})
//
// Any number of processes may run the same consumer; the server shares the messages out among them.
//
// # What becomes of a message
//
//   - Handled, handled before, or of a type that consumer.Ignore names: it is acknowledged.
//   - Of another type that has no handler: it is given back and comes again, later and later, up to a minute. So a
//     process of the next version gets it. Until one does, it counts against the MaxAckPending of the stream's
//     consumer.
//   - Failed: it is delivered again, later and later, up to the consumer's MaxAttempts.
//   - Failed too often, or never to be handled: it becomes a dead letter, a message to the subject DeadLetters with the
//     headers and the body that it had, and with headers that tell who gave it up, why, and where it was. It is given
//     up only when a stream has the letter.
//
// While a handler runs or a message waits, the loop tells the server that it is in progress, so that a handler may take
// longer than the AckWait of the stream's consumer.
//
// # Order
//
// Messages of one aggregate are handled one after the other, in the order in which they came; those of different
// aggregates at the same time. That holds in one process, and as long as nothing fails: a message that failed comes
// again behind those that were behind it, and other processes may have the next one. Handlers that mind ask
// inbox.Newer.
//
// # What is not promised
//
// A message comes again when its acknowledgement was lost, when the process or the connection died, or when the process
// stood still for longer than the AckWait. That each has one effect is the inbox's to see to.
//
// A message in progress counts as delivered, and so does one that was given back. One that came ten times because
// processes died under it or did not know its type, and then fails, is a dead letter at its third failure in one
// process.
package natsjetstream
