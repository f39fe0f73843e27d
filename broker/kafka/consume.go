package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/internal/wait"
)

const (
	// later is how long the loop waits before it asks a cluster again that has not answered, or not well.
	later = 2 * time.Second
	// maxLetter is more than any broker takes.
	maxLetter = 64 << 20
	// goodbye is how long the last commit may take.
	goodbye = 5 * time.Second
	// pauseOnErrors follows a poll that brought nothing but errors.
	pauseOnErrors = 100 * time.Millisecond
	// pollAtOnce is how many messages are taken from the client at a time.
	pollAtOnce = 500
)

// loop is what one [Consume] knows.
type loop struct {
	client   *kgo.Client
	consumer *consumer.Consumer
	config   ConsumeConfig
	log      *slog.Logger
	slots    chan struct{}   // one token for each handler that runs
	handling context.Context //nolint:containedctx // ends when nothing is to be begun any more

	// committing is held while the group is told something, so that nothing is committed for a partition that is given
	// back meanwhile.
	committing sync.Mutex

	mu    sync.Mutex
	owned map[partitionName]*assigned
	left  map[partitionName]*assigned // whose handlers may still run
}

// Consume receives messages and has them handled until ctx ends. Then it receives no more, lets the handlers that run
// finish, commits what is done, leaves the group, and returns nil.
//
// An error is one that waiting does not fix: the configuration, a topic that is missing when the loop begins, or
// credentials that are refused then. An outage of the cluster ends nothing, also at the start.
func Consume(ctx context.Context, cluster Cluster, c *consumer.Consumer, config ConsumeConfig) error {
	config, err := config.withDefaults(c)
	if err = errors.Join(cluster.validate(), err); err != nil {
		return err
	}
	handling, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	l := &loop{
		consumer: c, config: config,
		log:   c.Logger().With(slog.String("consumer", c.Name()), slog.String("group", config.Group)),
		slots: make(chan struct{}, config.Concurrency), handling: handling,
		owned: map[partitionName]*assigned{}, left: map[partitionName]*assigned{},
	}
	if err := l.wait(ctx, cluster); err != nil {
		if ctx.Err() != nil {
			return nil // it was told to stop
		}
		return err
	}
	if l.client, err = cluster.client(l.options()...); err != nil {
		return err
	}
	l.run(ctx, stop)
	return nil
}

// options are the client's, for a member of the group.
func (l *loop) options() []kgo.Opt {
	return []kgo.Opt{
		kgo.ConsumerGroup(l.config.Group), kgo.ConsumeTopics(l.config.Topics...),
		// One that comes or goes moves only the partitions that have to move.
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.SessionTimeout(l.config.SessionTimeout), kgo.HeartbeatInterval(min(3*time.Second, l.config.SessionTimeout/3)),
		kgo.RebalanceTimeout(l.config.RebalanceTimeout),
		kgo.DisableAutoCommit(),
		// Between a poll and the moment in which its messages are in their lines no partition is given back.
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(l.assign), kgo.OnPartitionsRevoked(l.revoke), kgo.OnPartitionsLost(l.lose),
		// A new group begins with the first message that there is, and so does one whose place retention has removed.
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		// For dead letters. How large they may be is the topic's business.
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.AllowIdempotentProduceCancellation(), kgo.ProducerBatchMaxBytes(maxLetter),
	}
}

// wait waits until the cluster has everything that the loop needs, however long that takes, unless an error is final.
func (l *loop) wait(ctx context.Context, cluster Cluster) error {
	client, err := cluster.client()
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		asking, cancel := context.WithTimeout(ctx, questionTimeout)
		err := checkTopics(asking, client, l.config)
		cancel()
		if err == nil || ctx.Err() != nil || errors.As(err, new(permanentError)) {
			return err
		}
		l.log.WarnContext(ctx, "the cluster does not answer as it should; asking again",
			slog.String("error", clean.Error(err)))
		_ = wait.For(ctx, later)
	}
}

//nolint:contextcheck // what handles and commits outlives ctx
func (l *loop) run(ctx context.Context, stop context.CancelFunc) {
	keeping, let := context.WithCancel(l.handling)
	var keepers sync.WaitGroup
	keepers.Go(func() { l.keepCommitting(keeping) })
	if l.config.ObserveLag != nil {
		keepers.Go(func() { l.keepObservingLag(keeping) })
	}
	l.receive(ctx)
	let()
	keepers.Wait()
	stop() // nothing is begun any more
	for _, a := range l.all() {
		a.lines.Wait()
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer cancel()
	l.commit(last)
	l.client.CloseAllowingRebalance() // and leaves the group
	l.mu.Lock()
	left := l.left
	l.mu.Unlock()
	for _, a := range left { // handlers of partitions that were taken away
		<-a.idle
	}
}

// receive takes messages until ctx ends.
func (l *loop) receive(ctx context.Context) {
	for {
		fetches := l.client.PollRecords(ctx, pollAtOnce)
		if ctx.Err() == nil && !fetches.IsClientClosed() {
			fetches.EachError(func(topic string, number int32, err error) {
				l.log.WarnContext(ctx, "receiving was interrupted; the client tries again", slog.String("topic", topic),
					slog.Int("partition", int(number)), slog.String("error", clean.Error(err)))
			})
			fetches.EachPartition(func(part kgo.FetchTopicPartition) {
				l.take(partitionName{part.Topic, part.Partition}, part.Records)
			})
		}
		l.client.AllowRebalance()
		if ctx.Err() != nil || fetches.IsClientClosed() {
			return
		}
		if len(fetches.Errors()) > 0 && fetches.NumRecords() == 0 {
			_ = wait.For(ctx, pauseOnErrors)
		}
	}
}

// take puts the messages of a partition into their lines.
func (l *loop) take(at partitionName, records []*kgo.Record) {
	l.mu.Lock()
	a := l.owned[at]
	l.mu.Unlock()
	if a == nil || len(records) == 0 {
		return // it was given back
	}
	for _, record := range records {
		if d := newDelivery(record); a.add(d) {
			a.lines.Go(func() { l.line(a, d) })
		}
	}
	l.turn(a)
}

// turn stops a partition that has got too far ahead of what is done, and lets it go on. The membership in the group
// does not depend on it.
func (l *loop) turn(a *assigned) {
	a.turning.Lock() // the client is told in the order in which it was decided
	defer a.turning.Unlock()
	switch pause, resume := a.turn(l.config.MaxAhead); {
	case pause:
		l.client.PauseFetchPartitions(map[string][]int32{a.topic: {a.number}})
	case resume:
		l.client.ResumeFetchPartitions(map[string][]int32{a.topic: {a.number}})
	}
}

// all are the partitions that this process has.
func (l *loop) all() (all []*assigned) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.owned {
		all = append(all, a)
	}
	return all
}

func (a *assigned) String() string { return fmt.Sprintf("%s/%d", a.topic, a.number) }
