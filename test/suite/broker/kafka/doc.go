// Package kafka runs the suite for publishers against a real Kafka, which the tests start for themselves, so that
// it can be killed and started again, and against franz-go's fake of one for faults that the real one cannot be
// made to show.
package kafka
