// Package publisher is the commands proof-publisher and proof-drain-stop: outbox-publisher as it is built, between
// servers that go away and come back, and stopped in the middle of its work.
//
// Nothing of it looks into the program. What it did is checked by what producers committed, what the database's
// triggers saw, what the broker got, what the probes answered and how the process ended.
package publisher
