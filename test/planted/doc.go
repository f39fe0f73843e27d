// Package planted runs the proof proof-planted: it builds the tests and proofs with the tag planted, sees them
// pass, and sees the one that is named for a mistake fail when the mistake is made.
//
// A mistake counts as caught only when it is found for what it is: by the test, or in the counter, that the
// table names. A process that crashes or hangs has found nothing.
package planted
