// Package failover is what command proof-failover proves: PostgreSQL clusters of its own that crash, fail over, hang
// on a standby that is not there and are restored, while a fleet of relays moves events to NATS.
//
// Each arm has a file. Those under load are runs of package torture, checked by package check.
package failover
