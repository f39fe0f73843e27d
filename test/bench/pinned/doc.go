// Package pinned measures whether a relay slows down while somebody keeps the database from cleaning up: an
// idle snapshot, or a transaction that wrote an event and stays open. Command bench-pinned is its front.
//
// Events come in an open loop, at times that are fixed beforehand. Latency is counted from the commit's
// return to the publisher's acknowledgement, with one clock, in one process. How late the producers
// themselves are is printed beside it, so that a slow machine cannot pass for a fast relay.
package pinned
