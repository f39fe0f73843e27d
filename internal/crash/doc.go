// Package crash names the moments at which the death of a process is tested: before and after every step
// that outlives it. Built with the tag crash, a process whose environment says POSTHASTE_CRASH=settle.before:3
// ends itself with SIGKILL when it comes to that point for the third time, and has written so to the file
// that POSTHASTE_CRASH_FILE names. Without the tag, [Point] is empty and nothing of this package is in the
// program.
//
// [List] is the list of all points. The proof proof-crash dies at each of them, proof-inbox at those of consumers, and
// proof-ops at those of jobs.
package crash
