// Package relay moves committed events from the outbox to a broker: at least once, in order per aggregate and topic,
// with any number of relays side by side.
//
// A relay needs the outbox's database, a registry of the contracts that it may publish, and a publisher:
//
//	registry, err := outbox.NewRegistry(OrderCreated)
//	...
//	r, err := relay.New(relay.Config{
//		Database:  os.Getenv("DATABASE_URL"),
//		Registry:  registry,
//		Publisher: publisher, // of a broker, or a function
//	})
//	...
//	err = r.Run(ctx) // until ctx ends and what was in flight is settled
//
// A publisher is a broker's module, a function, or [Handlers], which handles events in the relay's own process and
// needs no broker. [New] says everything that is wrong with a configuration at once; the zero value of each of
// [Settings] is what production needs. [Relay.Run] survives every outage of the database and the broker, and returns an
// error only for what a restart would not repair. Start as many relays as there are replicas of the application: each
// takes its share of the 64 lanes, and those of one that dies are taken over when its lease ends.
//
// # What happens to an event
//
// The relay reads what is committed, holds each event to its contract, publishes it, and writes down what came of it.
// The events of one aggregate on one topic go one after the other; all others go side by side. What a publisher's
// error says decides whose fault a failure is:
//
//   - The event's own: it is charged with an attempt and tried again later, in its place. After its last attempt, or at
//     once where it can never be published, it is dead, and its contract says whether later ones of its aggregate go
//     on (outbox.OnDeadSkip) or wait (outbox.OnDeadBlock).
//   - The topic's: nobody is charged. The topic carries nothing until a probe gets through; see [Relay.FailingTopics].
//   - Unknown: the broker may have the event. It is sent again, under the same id.
//
// An event of a type that is not in the registry is parked, for a relay that knows it.
//
// # What is promised
//
// Whatever was committed is published at least once, or is in the tables with the reason why not. A process may die, a
// lease end, a connection break or a server fail over at any point. Consumers may get an event twice, always with the
// same id. The events of an aggregate come in order on their topic, but for repeats, and for a dead one that the others
// did not wait for. docs/reference/guarantees.md has each promise with its limit and the test that shows it.
//
// # What is not
//
// Exactly-once delivery: package inbox makes an effect happen once. An order among aggregates or among topics. To know
// by itself what to do on a database that was restored or copied: there the relay publishes nothing, and
// [Relay.RestoreHold] says what it would send.
//
// # Around it
//
// What people decide, such as to try a dead event again or to pause a topic, is in package relay/operator. Package
// relay/retention deletes what is finished and old. [Relay.Survey] has what package relay/survey counts in the tables,
// for metrics; [Config.Observe] is told every [Step].
package relay
