// Package formats tests what a message looks like for those who read it: in each format, from each broker, with the
// software development kit of CloudEvents.
package formats
