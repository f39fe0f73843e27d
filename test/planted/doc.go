// Package planted runs the proof proof-planted: it builds the tests and proofs with mistakes in the product, sees
// them pass while none is made, and sees the one that is named for a mistake fail when it is made.
//
// Some mistakes are in the code, behind the tag planted; the others are mutants, which are texts to change, and are
// built in by an overlay.
//
// A mistake counts as caught only when it is found for what it is: by the words of the test, or in the counter, that
// the table names. A process that crashes or hangs, or a test that fails with other words, has found nothing.
package planted
