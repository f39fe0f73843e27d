// Package quickstart does what README says to a new user, word by word: in an empty folder outside of the repository,
// with the command installed from a module proxy, on a database that has nothing yet. It counts commands and seconds
// until an event is on screen, does the same with the module that `outboxctl init` writes, and then leaves things out:
// each error must say what to do, and that must help.
//
// And it runs pages: blocks of a shell and of SQL are run in their order, blocks in Go are compiled in a module outside
// of the repository, and a text behind a command is compared with what that has printed, but for times, ids, versions
// and the like. Comments right above a block say what cannot be seen from it: `<!-- not run: REASON -->`, `<!-- stays:
// NAME -->` for a terminal of its own, which begins in the folder where the page began, and `<!-- shown by: NAME -->`
// for what comes there. A line of three dots stands for any lines.
package quickstart
