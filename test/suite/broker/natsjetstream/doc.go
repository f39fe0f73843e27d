// Package natsjetstream runs the suite for publishers against a real NATS server, which each test starts
// for itself, so that it can be stopped, restarted and reconfigured.
package natsjetstream
