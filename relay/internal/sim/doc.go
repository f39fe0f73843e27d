// Package sim runs whole fleets of relays in simulated time: real cores, an in-memory database and a
// broker, producers and operators, and everything that can go wrong between them, decided by one seed.
// What happened is checked by internal/check.
//
// A simulation is one goroutine. Nothing in it looks at a clock, starts a goroutine or walks a map where the
// order matters, so that a seed gives the same run again, to the last step.
//
// What is not simulated: SQL, drivers, real brokers, and the shell around the core.
package sim
