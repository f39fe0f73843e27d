// Package pubsubemulator is a Google Pub/Sub emulator for tests that kill things: it remembers what
// it accepted, it delivers as Google says that its service does, and it can be told to misbehave.
//
// Google's in-process fake, pstest, knows topics, subscriptions and filters. This package puts a gRPC server in front
// of it and adds what a fake in memory does not have:
//
//   - Every accepted message is a line in messages.jsonl before the publisher gets its answer, and
//     before any subscriber can see it. [ReadMessages] reads that file: it is the history against
//     which a test proves that nothing was lost and nothing came out of order.
//   - Topics, subscriptions and acknowledgements are lines in state.jsonl. [Start] replays both
//     files, so that kill -9 and a new start lose no topic, no subscription and no message that a
//     subscription has not acknowledged. Message ids are never given twice.
//   - Delivery with order as Google's pages describe it. Many messages of an ordering key are out at a time, sent in
//     order, all to one stream. When one comes again, because of a nack or a deadline that has passed, all later ones
//     of its key come again behind it, acknowledged ones included; an acknowledgement is final when everything ahead
//     of it is acknowledged too. A pull gets messages of a key only when none are out.
//   - Retry policies: a message that failed waits, and its key with it. Dead letters: a message's attempts are one,
//     and its nacks, and its deadlines that have passed; one that only came along with an earlier one has not failed.
//   - Exactly-once delivery: an ack id whose deadline has passed or that is not the latest is an error that names it,
//     and so is one behind a message of its key that is not acknowledged.
//   - The service's limits: a request that Google would refuse is refused, with all that is in it. TestIamPermissions
//     grants what it is asked about.
//   - A fault port that turns calls into errors, delays them, handles them late, or accepts them and loses the
//     answer, which is the fault that makes a careful publisher publish twice; see [Fault].
//
// Promises: at-least-once delivery across restarts, in order per ordering key where the subscription
// asks for order. Not promised: delivery attempts that survive a restart, exactly-once delivery across one,
// expiry of old messages (nothing expires), push, BigQuery and Cloud Storage delivery, confirmations of
// acknowledgements on a stream. Seek, snapshots and schemas answer UNIMPLEMENTED.
//
// It has no authentication but [Config.Token], and therefore listens on loopback only.
package pubsubemulator
