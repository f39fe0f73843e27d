// Package supply tests what the project takes from others: known vulnerabilities, checksums of what is downloaded, and
// notices of licences.
package supply
