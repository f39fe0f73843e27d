// Package hostile sends hostile inputs the whole way: through Emit, outbox_emit or a bare INSERT into
// PostgreSQL, through a relay, to NATS JetStream and to Pub/Sub, and back. Each must end in one of four ways:
// refused at the emit, delivered as it was, dead with a reason, or set aside; and none may hold up the good
// event behind it. `make proof-hostile` runs it.
//
// The files, in the order of the path: env.go and outlet.go are the servers and the relays, inputs.go and the files
// input_*.go what is tried, run.go tries it, control.go goes the same way with nothing hostile on it, arrivals.go and
// the files of the brokers read back, checker.go and words.go say what became of it, report.go adds it up.
package hostile
