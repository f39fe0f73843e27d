// Package relay tests the relay on real PostgreSQL servers: what it promises about each event, and what it
// does about each fault that a process can meet without being killed. And what a message looks like for those who read
// it: in each format, from each broker, with the software development kit of CloudEvents.
package relay
