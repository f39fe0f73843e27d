// Package relaytest has what tests around a relay need. [TestPublisher] is the contract of a
// [publish.Publisher] as a suite of tests: a broker's adapter is done when it passes.
//
// The suite knows no broker. A [Harness] says how to make a publisher and topics, how to read what
// arrived, and which faults it can make; what it cannot do it declares with a reason, and the suite
// prints that reason where it skips.
package relaytest
