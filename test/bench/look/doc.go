// Package look measures what it costs to look at an outbox of millions of events: how long each command of outboxctl
// takes, how many pages its statements read, and what the optional index costs an emit. bench-look is its program.
package look
