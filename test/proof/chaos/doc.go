// Package chaos is command proof-chaos: servers of its own (PostgreSQL with a clock that is an hour
// off, PgBouncer, a broker that can be killed, proxies on all ways between them), and every fault that
// package torture and these servers know.
package chaos
