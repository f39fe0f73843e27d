// Package order has the plans of command proof-order, and the tests that show that a run of package torture
// finds what it should.
package order
