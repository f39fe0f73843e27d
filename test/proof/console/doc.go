// Package console runs the proof proof-console: a real Chromium goes through every page of the console, as people
// would, against a real PostgreSQL with two outboxes. In the shop there is a bit of everything that can go wrong, and
// somebody who repairs it. In the hostile one every field that a producer, a broker or an operator writes has a text
// that wants to be run by the browser of whoever looks at it.
package console
