// Package daemon tests outbox-publisher as it is built, between real servers.
package daemon
