// Package natsjetstream publishes events to NATS JetStream.
//
// The subject of a message comes from its topic, the message id that JetStream deduplicates by is the
// event's id, and the attributes are headers. A publish is done when the stream has acknowledged it.
//
// JetStream takes what comes behind a message that it refused, so the publisher is no relay.Pipeliner:
// each aggregate has one message in flight.
package natsjetstream
