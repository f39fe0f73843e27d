// Package shape measures the repository: modules, packages, lines, exported names, and the rules of CONTRIBUTING.md
// that a program can count. The command `make house` prints it.
//
// Go is read by go/parser and SQL by a lexer, never as text, so that a word in a comment or in a string is not
// taken for a name. Nothing is compiled, so it takes seconds and also works in a tree that does not build.
package shape
