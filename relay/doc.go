// Package relay moves committed events from the outbox to a broker: at least once, in order per aggregate
// and topic, with any number of relays side by side.
package relay
