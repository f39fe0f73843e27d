// Package torture does to a fleet of relays what machines, networks and operators do to it, and has package
// check say what came of it.
//
// Relays run as processes of their own between a real PostgreSQL and a real broker. Producers write events
// while faults are injected: relays are killed, stand still, leave; a plan can bring faults of its own, against the
// database, the broker or the ways between them. What everybody did is recorded, and checked when all is
// healed and drained.
//
// Who witnesses what: producers write down their transactions before and after the commit; the broker's
// messages are read back in their own order; triggers record every change of an event's state and of a lane's
// lease, by the database's clock; relays write down their steps. Leases are checked by what the database
// saw, never by what a relay believed.
//
// The files, in the order of a run: plan, env (schema, topics), broker and nats (the stage), producers and
// transaction, fleet and process (the relays), publisher (failures in front of the broker), injector and faults,
// operators, then collect, steps, tables, check, report.
package torture
