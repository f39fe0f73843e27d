// Package quickstart does what README says to a new user, word by word: in an empty folder outside of the repository,
// with the command installed from a module proxy, on a database that has nothing yet. It counts commands and seconds
// until an event is on screen, does the same with the module that `outboxctl init` writes, and then leaves things out:
// each error must say what to do, and that must help.
package quickstart
