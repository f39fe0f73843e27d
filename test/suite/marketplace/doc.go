// Package marketplace tests the reference application: its API and its consumers on real databases, and its programs
// between real brokers.
package marketplace
