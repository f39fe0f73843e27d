// Package redisinbox tests the inbox in Redis against real servers: the shared one, and servers of a test's own where
// one must be killed, stopped, restarted or short of memory.
package redisinbox
