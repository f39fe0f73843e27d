// Package publish is the contract between a relay and a broker: what a [Publisher] gets, what it answers, and what its
// errors mean. It needs nothing but the standard library and package outbox, so that a publisher of your own does not
// bring a database driver along.
//
// A publisher says with its error whose fault a failure is, and that decides what becomes of the event:
//
//   - nil: the broker has acknowledged the message. Only now the event counts as published.
//   - [RejectedError]: the broker refused this message for now. The event is charged with an attempt, and tried again.
//   - [TerminalError]: this message can never be published. The event is dead at once.
//   - [TopicError]: the topic takes no messages: an outage, missing rights, a spent quota. The topic is paused and
//     probed, and no event is charged. The broker may have the message all the same: it is sent again.
//   - [ErrNotSent]: the message was not handed to the broker. It is sent again, and nobody is charged.
//   - anything else, such as a deadline that passed: nobody knows whether the broker has the message. It is sent again,
//     and charged to the event when the topic carries others meanwhile.
//
// [ClassOf] names this in one word. The relay's package relaytest has a suite of tests that holds a publisher to the
// contract.
package publish
