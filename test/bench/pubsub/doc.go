// Package pubsub measures how fast one topic of Google Pub/Sub takes events of many aggregates when every request is a
// round trip of 30 ms away, as it is in production and never on this machine.
//
// With ordering keys a request has events of one aggregate, so that a topic's rate is the number of requests under way
// in a round trip. A publisher that has fewer under way than the relay gives it has found a bound that nobody set: that
// is counted, and no matter how busy the machine is. The rate itself is told beside that of bare requests to the same
// server, in turns.
package pubsub
