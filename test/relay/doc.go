// Package relay tests the relay on real PostgreSQL servers: what it promises about each event, and what it
// does about each fault that a process can meet without being killed.
package relay
