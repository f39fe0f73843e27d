// Package growth measures whether what a relay does stays within its bounds as an outbox grows: beside the backlog of
// a topic that is down, behind dead and parked events without number, and with type names that nobody knows. Each
// state is made in two sizes, and what a row costs in the large one is compared with the small one.
package growth
