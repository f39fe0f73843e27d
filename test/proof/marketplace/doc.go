// Package marketplace is the command proof-marketplace: the whole marketplace, from a request to its effect, with its
// API, publishers and workers as they are built, while each of them is killed again and again.
//
// Nothing of it looks into the programs. Triggers of its own note what was emitted, an eye of its own sees what arrives
// at the broker, and the tables of the application tell the rest. What is read is checked by functions that take it as
// it is, so that tests can hand them something broken.
package marketplace
