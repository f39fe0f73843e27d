// Package kafka publishes events to Apache Kafka, and consumes them: [NewPublisher] makes the publisher of a relay, a
// [publish.Pipeliner], and [Consume] is the loop around [consumer.Consumer.Process].
//
// # Publishing
//
// The key of a record is the event's aggregate, hashed as Kafka's own clients do, so the events of one aggregate
// are in one partition, in order. The attributes are headers; in the format cloudevents they are named as the
// binding of CloudEvents to Kafka names them. The record's time is when it was sent: retention counts from there.
//
// Up to [PublisherConfig.Depth] events of one aggregate are in flight. When one fails, all that were handed over
// behind it fail with [ErrBehindFailure], and the key goes on when the failed event, or one that was behind it, is
// handed over again. Other keys do not notice, also those of the same partition.
//
// Promises: nil means that all replicas that are in sync have the record: min.insync.replicas says how many that
// are at least. A batch that was not answered is sent again as it was, and the broker takes it once.
// [publish.ErrNotSent] means that this one was not sent, or that one of its key before it failed. A
// [publish.TopicError] leaves it open: an outage, a partition without a leader, a missing topic, credentials that
// are refused, a deadline that passed. None of that is an event's fault. No message is refused because of another
// one that shared its batch: where the broker does not say which one it was, parts of the batch are sent until it
// is known. What was given up is not sent any more, unless its request is under way. Topics are never made by being
// used.
//
// A broker that misses what it had acknowledged stops the topic with [ErrDataLoss], until somebody has looked.
//
// Not promised: that a record is there once. What was given up with its answer on the way is sent again, as a new
// record with the same event_id.
//
// # Partitions
//
// With another number of partitions a key may be in another partition than before. The publisher changes over when all
// that it has sent is answered, but who reads the partitions side by side may read the new one first: for that moment
// the order of a key is lost. Make a topic with as many partitions as it will ever need. Handlers that mind ask
// inbox.Newer, which refuses to go backwards.
//
// # Consuming
//
//	err = kafka.Consume(ctx, cluster, compliance, kafka.ConsumeConfig{Topics: []string{"licenses"},
//		DeadLetters: "dead.compliance"})
//
// The consumer is a group of Kafka's, under its own name. Any number of processes may run it; the group shares the
// partitions out among them, and moves no more of them than it has to when one comes or goes.
//
// # What becomes of a message
//
//   - Handled, handled before, or of a type that consumer.Ignore names: it is done.
//   - Failed: the handler is run again here, later and later, up to the consumer's MaxAttempts. Kafka has no other
//     place for a message to wait, so those of its aggregate wait behind it, and those of other aggregates go on.
//   - Failed too often, or never to be handled: it becomes a dead letter, a record of the topic DeadLetters with
//     the key, the headers and the value that it had, and with headers that tell who gave it up, why, and where it
//     was. It is done only when that topic has the letter.
//   - Of a type that has no handler: it waits, and what is behind it of its aggregate too, until a process of the next
//     version takes the partition over.
//
// A group remembers one number for each partition, so what is committed is what is done up to the first message
// that is not. When a message waits for long the partition stops behind it, [ConsumeConfig.MaxAhead] messages later
// at the latest.
//
// # Attempts
//
// Kafka counts no deliveries, so the loop counts attempts itself, in memory. A process that dies takes its counts
// along: an event that kills its process begins at the first attempt in the next one.
//
// # Order
//
// The messages of one aggregate are handled one after the other, in the order of their partition, also when one
// fails. What the process had when it died or lost the partition comes again, up to [ConsumeConfig.MaxAhead]
// messages for each partition, also those that were handled: the inbox knows them.
//
// When a partition is taken away in an orderly way, the loop finishes what runs, abandons what has not begun, and
// commits what is done, up to the first message that is not, before it lets go. When it was lost, because the
// process stood still for longer than the session, nothing is committed for it any more.
//
// # What is not promised
//
// That a message comes once. That each has one effect is the inbox's to see to.
package kafka
