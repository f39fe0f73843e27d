// Package torture does to a fleet of relays what machines, networks and operators do to it, and has package
// check judge what came of it.
//
// Relays run as processes of their own between a real PostgreSQL and a real broker. Producers write events
// while blows fall: relays are killed, stand still, leave; a plan can bring blows of its own, against the
// database, the broker or the ways between them. What everybody did is recorded, and judged when all is
// healed and drained.
//
// Who witnesses what: producers write down their transactions before and after the commit; the broker's
// messages are read back in their own order; triggers note every change of an event's state and of a lane's
// lease, by the database's clock; relays write down their steps. Leases are judged by what the database
// saw, never by what a relay believed.
//
// The files, in the order of a run: plan, world (schema, topics), broker and nats (the stage), producers and
// deal, fleet and life (the relays), publisher (failures in front of the broker), storm and blows, operators,
// then collect, steps, tables, judge, report.
package torture
