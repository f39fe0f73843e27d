// Package crash lets processes die at every point of package internal/crash, one at a time: a relay, a
// producer, an operator or a migrator, as a process of its own, with an outbox and a stream of its own and
// some hundred events. Another process takes over, everything is drained, and package check checks what came
// of it. A point that nobody came to counts as not tested.
//
// The files, in the order of a trial: matrix (who dies where), trial (from the first event to the verdict),
// contracts and producer (what is written), victim and server (how somebody dies), extra (trials without a
// point), process and life (what a process does), publisher and socket (the broker as a relay sees it),
// operator, then run and report.
package crash
