// Package services says where the servers of `make services` are. The environment can name others.
package services

import "os"

// Postgres18 is the URL of PostgreSQL 18, as superuser.
func Postgres18() string {
	return named("SERVICES_POSTGRES18_URL", "postgres://postgres@127.0.0.1:15418/posthaste?sslmode=disable")
}

// Postgres15 is the URL of PostgreSQL 15, as superuser.
func Postgres15() string {
	return named("SERVICES_POSTGRES15_URL", "postgres://postgres@127.0.0.1:15415/posthaste?sslmode=disable")
}

// PgBouncer18 leads to PostgreSQL 18 through PgBouncer in transaction mode.
func PgBouncer18() string {
	return named("SERVICES_PGBOUNCER_URL", "postgres://postgres@127.0.0.1:16432/posthaste?sslmode=disable")
}

// PgBouncer15 leads to PostgreSQL 15 through the same PgBouncer.
func PgBouncer15() string {
	return named("SERVICES_PGBOUNCER15_URL", "postgres://postgres@127.0.0.1:16432/posthaste15?sslmode=disable")
}

// NATS is the URL of NATS with JetStream.
func NATS() string { return named("SERVICES_NATS_URL", "nats://127.0.0.1:14222") }

// Kafka is a broker of a cluster of Kafka, as host:port.
func Kafka() string { return named("SERVICES_KAFKA_BROKERS", "127.0.0.1:19092") }

// PubSub is the Pub/Sub emulator, as host:port.
func PubSub() string { return named("SERVICES_PUBSUB_ADDR", "127.0.0.1:18085") }

// Redis is Redis, as host:port.
func Redis() string { return named("SERVICES_REDIS_ADDR", "127.0.0.1:16379") }

func named(variable, otherwise string) string {
	if value := os.Getenv(variable); value != "" {
		return value
	}
	return otherwise
}
