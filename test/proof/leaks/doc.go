// Package leaks is command proof-leaks: secrets and personal data are planted wherever a publisher meets some, chaos is
// let loose on it, and then everything that people and machines can read about it is searched for them, in every
// spelling that software gives to a text.
package leaks
