package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/posthaste-dev/posthaste/publish"
)

// meaning is what an answer means for a batch.
type meaning int

const (
	stored meaning = iota
	// again: it is not the batch. It is sent again for as long as somebody waits for it.
	again
	// ofMessage: a message of the batch is at fault, and nothing of it is stored.
	ofMessage
	// ofTopic: the topic takes no messages.
	ofTopic
	// unknownProducer: the brokers do not know the publisher's number any more.
	unknownProducer
	// dataLost: the broker misses what came before.
	dataLost
	// unclear: an error that is not known here.
	unclear
)

// outcome is what became of a batch.
type outcome struct {
	meaning  meaning
	err      error
	culprits map[int]error // the messages at fault, by their place, where the broker says it
	unsure   bool          // it may be stored all the same
	stale    bool          // the table may be old
	offset   int64         // of the first message
	start    int64         // where the partition begins
}

// ErrDataLoss says that a broker misses messages that it had acknowledged, for instance because a replica that was
// not in sync became the leader. The topic takes nothing more until the publisher is made anew: look at what is
// missing first, with `outboxctl audit`, and send it again.
var ErrDataLoss = errors.New("kafka: acknowledged messages are lost")

var errNoAnswer = errors.New("the broker's answer is not about the partition")

func lostError(topic string, partition int32, err error) error {
	return &publish.TopicError{Err: fmt.Errorf("%w: topic %s, partition %d: %w", ErrDataLoss, topic, partition, err)}
}

// errorOf is the error of a code; nil: there is none.
func errorOf(code int16, message *string) error {
	err := kerr.ErrorForCode(code)
	if err != nil && message != nil && *message != "" {
		return fmt.Errorf("%w: %s", err, *message)
	}
	return err //nolint:wrapcheck // the caller says what it is about
}

// missingError is that of a topic which is not there.
type missingError struct{ err error }

func (e *missingError) Error() string { return "it does not exist, make it: " + e.err.Error() }
func (e *missingError) Unwrap() error { return e.err }

// missing says of a topic that is not there what to do.
func missing(err error) error {
	if errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.UnknownTopicID) {
		return &missingError{err}
	}
	return err
}

// named has an error say which topic it is about.
func named(topic string, err error) error {
	switch failure := err.(type) { //nolint:errorlint // the outermost is wrapped anew
	case *publish.TerminalError:
		return &publish.TerminalError{Reason: failure.Reason, Err: fmt.Errorf("kafka: topic %s: %w", topic, failure.Err)}
	case *publish.RejectedError:
		return &publish.RejectedError{Err: fmt.Errorf("kafka: topic %s: %w", topic, failure.Err)}
	default:
		return fmt.Errorf("kafka: topic %s: %w", topic, err)
	}
}

// passes tells whether it is worth while to ask again, while somebody waits.
func passes(err error) bool {
	broker := (*kerr.Error)(nil)
	switch {
	case deniedLogin(err), errors.Is(err, kgo.ErrClientClosed):
		return false
	case errors.As(err, &broker):
		return broker.Retriable && !errors.Is(err, kerr.UnknownTopicOrPartition) && !errors.Is(err, kerr.UnknownTopicID)
	default:
		return true // an outage
	}
}

// deniedLogin tells of credentials, or a way of showing them, that the brokers do not take, and of those of a
// broker that are not trusted here.
func deniedLogin(err error) bool {
	return errors.As(err, new(*tls.CertificateVerificationError)) ||
		errors.Is(err, kerr.SaslAuthenticationFailed) || errors.Is(err, kerr.UnsupportedSaslMechanism) ||
		errors.Is(err, kerr.IllegalSaslState)
}

// notAnswered says what it means that there was no answer.
func notAnswered(err error, sent bool) outcome {
	dialing := (*net.OpError)(nil)
	switch {
	case deniedLogin(err), errors.Is(err, kerr.ClusterAuthorizationFailed), errors.Is(err, kgo.ErrClientClosed):
		return outcome{meaning: ofTopic, err: err}
	case errors.As(err, &dialing) && dialing.Op == "dial":
		return outcome{meaning: again, err: err, stale: true}
	case errors.Is(err, context.Canceled):
		return outcome{meaning: ofTopic, err: fmt.Errorf("%w: %w", errClosing, err), unsure: sent}
	default:
		return outcome{meaning: again, err: err, unsure: sent, stale: true}
	}
}

// meaningOf says what a broker's answer about a batch means.
func meaningOf(answer *kmsg.ProduceResponseTopicPartition) outcome {
	err := errorOf(answer.ErrorCode, answer.ErrorMessage)
	said := outcome{err: err, offset: answer.BaseOffset, start: answer.LogStartOffset}
	switch answer.ErrorCode {
	case 0, kerr.DuplicateSequenceNumber.Code: // it was stored at an earlier try
		said.err, said.meaning = nil, stored
	case kerr.MessageTooLarge.Code, kerr.RecordListTooLarge.Code:
		said.meaning, said.err = ofMessage, &publish.TerminalError{
			Reason: publish.ReasonTooLarge, Err: fmt.Errorf("above the topic's max.message.bytes: %w", err),
		}
	case kerr.InvalidRecord.Code, kerr.InvalidTimestamp.Code, kerr.CorruptMessage.Code:
		said.meaning, said.err = ofMessage, &publish.RejectedError{Err: err}
		said.culprits = culprits(answer, err)
	case kerr.OutOfOrderSequenceNumber.Code, kerr.UnknownProducerID.Code:
		said.meaning = dataLost
	case kerr.InvalidProducerEpoch.Code, kerr.ProducerFenced.Code, kerr.InvalidProducerIDMapping.Code:
		said.meaning = unknownProducer
	case kerr.UnknownTopicOrPartition.Code, kerr.UnknownTopicID.Code:
		// The table is read again; if the topic is not there, that says so.
		said.meaning, said.stale = again, true
	case kerr.RequestTimedOut.Code, kerr.NotEnoughReplicasAfterAppend.Code:
		said.meaning, said.unsure = again, true
	case kerr.TopicAuthorizationFailed.Code, kerr.ClusterAuthorizationFailed.Code, kerr.InvalidTopicException.Code,
		kerr.PolicyViolation.Code, kerr.ThrottlingQuotaExceeded.Code, kerr.InvalidRequiredAcks.Code,
		kerr.UnsupportedVersion.Code, kerr.UnsupportedForMessageFormat.Code, kerr.UnsupportedCompressionType.Code:
		said.meaning = ofTopic
	default:
		if said.meaning = unclear; kerr.IsRetriable(kerr.ErrorForCode(answer.ErrorCode)) {
			said.meaning, said.stale = again, true
		}
	}
	return said
}

// culprits are the messages that the broker names as those at fault.
func culprits(answer *kmsg.ProduceResponseTopicPartition, err error) map[int]error {
	if len(answer.ErrorRecords) == 0 {
		return nil
	}
	named := make(map[int]error, len(answer.ErrorRecords))
	for _, record := range answer.ErrorRecords {
		why := err
		if record.ErrorMessage != nil && *record.ErrorMessage != "" {
			why = fmt.Errorf("%w: %s", kerr.ErrorForCode(answer.ErrorCode), *record.ErrorMessage)
		}
		named[int(record.RelativeOffset)] = &publish.RejectedError{Err: why}
	}
	return named
}
