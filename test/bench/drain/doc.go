// Package drain measures how fast a backlog leaves the outbox: by the relay, by the shortest loop that
// could do the same work, and by a loop that leases rows; and how several relays share one backlog.
//
// Whatever drains, every event is counted where it arrives, each once and in the order of its aggregate,
// and looked up in the table afterwards. A turn in which one is missing has no figure.
package drain
