// Package dev is an outbox for one developer: a relay in this process, and a broker that hands each event to a
// function. Every event type is accepted, as it comes.
package dev
