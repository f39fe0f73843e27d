// Package contracts tests what is made of a registry for others: the AsyncAPI document by AsyncAPI's own parser, and
// the SQL for producers on real PostgreSQL servers.
package contracts
