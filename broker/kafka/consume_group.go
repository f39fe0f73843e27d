package kafka

import (
	"context"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/internal/wait"
)

// assign hears which partitions this process has besides those that it had.
func (l *loop) assign(ctx context.Context, _ *kgo.Client, parts map[string][]int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for topic, numbers := range parts {
		for _, number := range numbers {
			at := partitionName{topic, number}
			l.owned[at] = newAssigned(l.handling, at, l.left[at]) //nolint:contextcheck // it ends with the loop
			delete(l.left, at)
		}
	}
	if len(parts) > 0 {
		l.log.InfoContext(ctx, "partitions were assigned", slog.Any("partitions", parts))
	}
}

// revoke gives partitions back: what has not begun is abandoned, what runs is finished, and what is done is committed,
// before another process may have them.
func (l *loop) revoke(ctx context.Context, client *kgo.Client, parts map[string][]int32) {
	leaving := l.leave(client, parts)
	if len(leaving) == 0 {
		return
	}
	l.log.InfoContext(ctx, "partitions are given back", slog.Any("partitions", parts))
	// Those that take longer than that go on, and their messages come again elsewhere: the group would else take
	// everything away.
	patience, cancel := context.WithTimeout(ctx, l.config.RebalanceTimeout*3/4)
	defer cancel()
	for _, a := range leaving {
		select {
		case <-a.idle:
		case <-patience.Done():
			l.log.WarnContext(ctx, "handlers run on for a partition that is given back: their messages come again elsewhere",
				slog.String("partition", a.String()))
		}
	}
	last, end := context.WithTimeout(ctx, goodbye)
	defer end()
	l.commit(last)
	l.forget(leaving)
}

// lose hears of partitions that others may have already. Nothing is committed for them.
func (l *loop) lose(ctx context.Context, client *kgo.Client, parts map[string][]int32) {
	leaving := l.leave(client, parts)
	for _, a := range leaving {
		a.let()
	}
	if len(leaving) > 0 {
		l.log.WarnContext(ctx, "partitions were lost: what is handled for them comes again elsewhere",
			slog.Any("partitions", parts))
	}
	l.forget(leaving)
}

// leave has nothing more begun for partitions.
func (l *loop) leave(client *kgo.Client, parts map[string][]int32) (leaving []*assigned) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for topic, numbers := range parts {
		for _, number := range numbers {
			if a := l.owned[partitionName{topic, number}]; a != nil {
				leaving = append(leaving, a)
				a.leave()
			}
		}
	}
	client.ResumeFetchPartitions(parts) // whoever is assigned them again begins with them
	return leaving
}

// forget takes partitions away from those that are committed for.
func (l *loop) forget(leaving []*assigned) {
	l.committing.Lock() // a commit that is on its way ends before the partition is another's
	defer l.committing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range leaving {
		a.let()
		delete(l.owned, a.partitionName)
		l.left[a.partitionName] = a
	}
	for at, a := range l.left {
		select {
		case <-a.idle:
			delete(l.left, at)
		default:
		}
	}
}

// keepCommitting tells the group what is done, now and then.
func (l *loop) keepCommitting(ctx context.Context) {
	for wait.For(ctx, l.config.CommitInterval) == nil {
		l.commit(ctx)
	}
}

// commit tells the group what is done.
func (l *loop) commit(ctx context.Context) {
	l.committing.Lock()
	defer l.committing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, goodbye)
	defer cancel()
	offsets, told := map[string]map[int32]kgo.EpochOffset{}, map[partitionName]*assigned{}
	for _, a := range l.all() {
		if at, is := a.toCommit(); is {
			if offsets[a.topic] == nil {
				offsets[a.topic] = map[int32]kgo.EpochOffset{}
			}
			offsets[a.topic][a.number], told[a.partitionName] = at, a
		}
	}
	if len(offsets) == 0 {
		return
	}
	began := time.Now()
	l.client.CommitOffsetsSync(ctx, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest,
		answer *kmsg.OffsetCommitResponse, err error,
	) {
		if err == nil {
			err = l.markCommitted(answer, offsets, told)
		}
		if err != nil && ctx.Err() == nil || err != nil && time.Since(began) >= goodbye {
			l.log.WarnContext(ctx, "what is done could not be committed: if it stays so, messages come again",
				slog.String("error", clean.Error(err)))
		}
	})
}

// markCommitted takes note of what the group has been told, and returns what it refused.
func (l *loop) markCommitted(answer *kmsg.OffsetCommitResponse, offsets map[string]map[int32]kgo.EpochOffset,
	told map[partitionName]*assigned,
) (invalid error) {
	for _, topic := range answer.Topics {
		for _, part := range topic.Partitions {
			if err := kerr.ErrorForCode(part.ErrorCode); err != nil {
				invalid = err
			} else if a := told[partitionName{topic.Topic, part.Partition}]; a != nil {
				a.remembered(offsets[topic.Topic][part.Partition].Offset)
			}
		}
	}
	return invalid
}
