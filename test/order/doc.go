// Package order runs relays as processes of their own against a real PostgreSQL and a real NATS JetStream,
// lets them join, leave, die and stand still while producers write, records what everybody did, and has
// package check judge it. Command proof-order is its front.
//
// Who witnesses what: producers write down their transactions before and after the commit; the stream is
// read back in its own order; triggers note every change of an event's state and every change of a lane's
// lease, by the database's clock; relays write down their steps. Leases are judged by what the database
// saw, never by what a relay believed.
package order
