// Package pubsubemulator is a Google Pub/Sub emulator for tests that kill things: it remembers what
// it accepted, and it can be told to misbehave.
//
// Google's in-process fake, pstest, does the work of a broker: topics, subscriptions, filters, ack
// deadlines, order per ordering key. This package puts a gRPC server in front of it and adds what a
// fake in memory cannot have:
//
//   - Every accepted message is a line in messages.jsonl before the publisher gets its answer, and
//     before any subscriber can see it. [ReadMessages] reads that file: it is the history against
//     which a test proves that nothing was lost and nothing came out of order.
//   - Topics, subscriptions and acknowledgements are lines in state.jsonl. [Start] replays both
//     files, so that kill -9 and a new start lose no topic, no subscription and no message that a
//     subscription has not acknowledged. Message ids are never given twice.
//   - A fault port turns calls into errors, delays them, or accepts them and loses the answer, which
//     is the fault that makes a careful publisher publish twice.
//
// Promises: at-least-once delivery across restarts, in order per ordering key where the subscription
// asks for order. Not promised: exactly-once delivery, delivery attempts that survive a restart,
// expiry of old messages (nothing expires), push, BigQuery and Cloud Storage delivery, retry policies.
// Seek, snapshots and schemas answer UNIMPLEMENTED.
//
// It has no authentication and therefore listens on loopback only.
package pubsubemulator
