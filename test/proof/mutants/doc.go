// Package mutants runs the proof proof-mutants: it builds the tests and proofs with known mistakes in the product, sees
// them pass while none is made, and sees the one that is named for a mistake fail when it is made.
//
// A mutant is the product with one mistake. It is data: a text of a file, and the wrong one in its place. The product
// knows nothing of it. One build has all mutants (see [Build]), and a process is the one that its environment names.
//
// A mutant counts as caught only when it is found for what it is: by the words of the test, or in the counter, that
// the table names. A process that crashes or hangs, or a test that fails with other words, has found nothing.
package mutants
