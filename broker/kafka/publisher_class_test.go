package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/posthaste-dev/posthaste/publish"
)

func TestMeaningOfAnAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code   int16
		want   meaning
		unsure bool
	}{
		{0, stored, false},
		{kerr.DuplicateSequenceNumber.Code, stored, false},
		{kerr.MessageTooLarge.Code, ofMessage, false},
		{kerr.RecordListTooLarge.Code, ofMessage, false},
		{kerr.InvalidRecord.Code, ofMessage, false},
		{kerr.InvalidTimestamp.Code, ofMessage, false},
		{kerr.CorruptMessage.Code, ofMessage, false},
		{kerr.OutOfOrderSequenceNumber.Code, dataLost, false},
		{kerr.UnknownProducerID.Code, dataLost, false},
		{kerr.InvalidProducerEpoch.Code, unknownProducer, false},
		{kerr.RequestTimedOut.Code, again, true},
		{kerr.NotEnoughReplicasAfterAppend.Code, again, true},
		{kerr.NotEnoughReplicas.Code, again, false},
		{kerr.NotLeaderForPartition.Code, again, false},
		{kerr.LeaderNotAvailable.Code, again, false},
		{kerr.KafkaStorageError.Code, again, false},
		{kerr.UnknownTopicOrPartition.Code, again, false},
		{kerr.UnknownTopicID.Code, again, false},
		{kerr.TopicAuthorizationFailed.Code, ofTopic, false},
		{kerr.ClusterAuthorizationFailed.Code, ofTopic, false},
		{kerr.InvalidTopicException.Code, ofTopic, false},
		{kerr.PolicyViolation.Code, ofTopic, false},
		{kerr.UnsupportedCompressionType.Code, ofTopic, false},
		{32_000, unclear, false}, // a code of tomorrow
	} {
		said := meaningOf(&kmsg.ProduceResponseTopicPartition{ErrorCode: c.code})
		if said.meaning != c.want || said.unsure != c.unsure || (said.err == nil) != (c.want == stored) {
			t.Errorf("code %d: %+v, want %d", c.code, said, c.want)
		}
	}
}

func TestMeaningOfNoAnswer(t *testing.T) {
	t.Parallel()
	dialing := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	for _, c := range []struct {
		err    error
		want   meaning
		unsure bool
	}{
		{dialing, again, false},
		{fmt.Errorf("read: %w", io.EOF), again, true},
		{&net.OpError{Op: "read", Err: errors.New("connection reset")}, again, true},
		{kerr.SaslAuthenticationFailed, ofTopic, false},
		{kerr.UnsupportedSaslMechanism, ofTopic, false},
		{kgo.ErrClientClosed, ofTopic, false},
		{context.Canceled, ofTopic, true},
		{errors.New("something else"), again, true},
	} {
		said := notAnswered(c.err, true)
		if said.meaning != c.want || said.unsure != c.unsure || !errors.Is(said.err, c.err) {
			t.Errorf("%v: %+v, want %d", c.err, said, c.want)
		}
	}
}

// TestErrorsNameTheirTopic, and keep their class.
func TestErrorsNameTheirTopic(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want publish.Class
	}{
		{&publish.TerminalError{Reason: publish.ReasonTooLarge, Err: io.EOF}, publish.Terminal},
		{&publish.RejectedError{Err: io.EOF}, publish.Rejected},
		{&publish.TopicError{Err: io.EOF}, publish.TopicFault},
		{io.EOF, publish.Unknown},
	} {
		err := named("orders", c.err)
		if publish.ClassOf(err) != c.want || !errors.Is(err, io.EOF) {
			t.Errorf("%v has class %s, want %s", err, publish.ClassOf(err), c.want)
		}
	}
}
