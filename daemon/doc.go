// Package daemon is the publisher as a program: a relay with its configuration, its probes, its log and its
// signals around it. `outbox-publisher` is this package with two brokers; whoever wants contracts compiled in,
// a broker of their own or other names for the keys calls [Main] with a [Program] of their own.
//
// It promises: what is wrong with the configuration is told all at once, and nothing starts; an outage of the
// database or the broker, also at the start and of any length, is waited for; the first signal drains, the
// second cuts what is in flight; nothing that reads the log or asks the probes can hold the relay up; and no secret is
// logged.
// To a database or broker on another machine it speaks verified TLS, or it was told by name not to.
package daemon
