// Package planted has mistakes that were put into the code on purpose, to see that the tests and proofs find
// them. Built with the tag planted, a process whose environment says POSTHASTE_PLANTED=settle-without-token
// makes that mistake; without the tag [Is] is the constant false, and nothing of this package is in the program.
//
// [List] is the list of all mistakes. The proof proof-planted makes each of them and demands that the cheapest
// test or proof for it fails.
package planted
