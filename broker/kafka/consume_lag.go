package kafka

import (
	"context"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/internal/wait"
)

// Lag is how far a partition is behind.
type Lag struct {
	Topic     string
	Partition int32
	// Next is the first message that is not done; -1: nothing was received of the partition yet.
	Next int64
	// End is where the next message will be.
	End int64
}

// Messages is how many are not done; -1: nobody knows yet.
func (l Lag) Messages() int64 {
	if l.Next < 0 {
		return -1
	}
	return max(0, l.End-l.Next)
}

// keepObservingLag tells the observer of the lag, now and then.
func (l *loop) keepObservingLag(ctx context.Context) {
	for wait.For(ctx, l.config.LagInterval) == nil {
		asking, cancel := context.WithTimeout(ctx, questionTimeout)
		lags, err := l.lag(asking)
		cancel()
		if err != nil {
			l.log.WarnContext(ctx, "how far the partitions are behind could not be read", slog.String("error", clean.Error(err)))
			continue
		}
		l.config.ObserveLag(ctx, lags)
	}
}

// lag asks where the partitions end that this process has.
func (l *loop) lag(ctx context.Context) (lags []Lag, err error) {
	const end = -1
	owned := map[partitionName]*assigned{}
	byTopic := map[string][]kmsg.ListOffsetsRequestTopicPartition{}
	for _, a := range l.all() {
		owned[a.partitionName] = a
		part := kmsg.NewListOffsetsRequestTopicPartition()
		part.Partition, part.Timestamp = a.number, end
		byTopic[a.topic] = append(byTopic[a.topic], part)
	}
	if len(owned) == 0 {
		return nil, nil
	}
	question := kmsg.NewPtrListOffsetsRequest()
	question.IsolationLevel = 1 // what is not committed is not received
	for topic, parts := range byTopic {
		about := kmsg.NewListOffsetsRequestTopic()
		about.Topic, about.Partitions = topic, parts
		question.Topics = append(question.Topics, about)
	}
	answer, err := question.RequestWith(ctx, l.client)
	if err != nil {
		return nil, err //nolint:wrapcheck // it is only logged
	}
	for _, topic := range answer.Topics {
		for _, part := range topic.Partitions {
			if err := kerr.ErrorForCode(part.ErrorCode); err != nil {
				return nil, err //nolint:wrapcheck // it is only logged
			}
			if a := owned[partitionName{topic.Topic, part.Partition}]; a != nil {
				lags = append(lags, Lag{Topic: a.topic, Partition: a.number, Next: a.position(), End: part.Offset})
			}
		}
	}
	return lags, nil
}

// position is the first message that is not done; -1: nothing was received yet.
func (a *assigned) position() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.ahead) > 0 {
		return a.ahead[0].record.Offset
	}
	return a.next
}
