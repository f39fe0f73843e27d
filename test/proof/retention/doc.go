// Package retention measures whether live traffic feels retention, and looks at what retention leaves. Command
// proof-retention is its front; the tests of its rules are here as well.
//
// Events come in an open loop, at times that are fixed beforehand. Latency is counted from the commit's return to
// the publisher's acknowledgement, with one clock, in one process. Stretches with and without retention take turns,
// so that what else the machine does falls on both.
package retention
