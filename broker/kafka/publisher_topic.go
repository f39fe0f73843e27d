package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/publish"
)

// tableAge is how old what is known of a topic may become: then it is asked for again, to learn of new partitions.
const tableAge = time.Minute

// table is what the cluster says of a topic.
type table struct {
	id      [16]byte
	leaders []int32 // by partition; -1: it has none
	limit   int     // max.message.bytes; 0: it may not be read
	readAt  time.Time
}

// topic hands the messages of one topic to its partitions.
//
// Franz-go's own producer is not used for that. When a batch fails, it fails all that it holds of the partition and
// goes on at once with what comes, before it has told anybody: a message that is handed over in that moment passes
// one of its key that has failed. It does not say either which record of a batch was at fault, although the broker
// does. So each partition has a queue of our own and one batch under way (see partition), with the numbers by which
// a broker takes a batch once. Connections, logins, and where a partition has its leader stay franz-go's and the
// cluster's business.
type topic struct {
	publisher   *Publisher
	name        string
	partitioner kgo.TopicPartitioner

	reading sync.Mutex // held while the cluster is asked

	mu    sync.Mutex
	table *table // nil: nobody has said yet
	// grown is a table with another number of partitions, or of another topic that has this name now. Keys move
	// with it, so it counts when all partitions are idle.
	grown      *table
	arriving   []*handOver // until there is a table that counts
	finding    bool        // a goroutine looks for the first table
	refreshing bool
	partitions []*partition
	lines      map[string]*line
	swept      time.Time
	lastErr    error // why there is no table
	lost       error // data was lost: nothing more is taken
}

func (p *Publisher) newTopic(name string) *topic {
	return &topic{
		publisher: p, name: name, partitioner: kgo.StickyKeyPartitioner(nil).ForTopic(name), lines: map[string]*line{},
	}
}

// take puts a hand-over into its partition's queue, or refuses it.
func (t *topic) take(h *handOver) {
	h.size = sizeOf(h.message)
	now := time.Now()
	t.mu.Lock()
	var answers []answer
	switch {
	case h.ctx.Err() != nil:
		answers = []answer{t.answerFailed(h, notSentInTime(h.ctx))}
	case !t.lines[h.message.Key].admits(h, now):
		answers = []answer{t.reject(h)}
	case t.lost != nil:
		answers = []answer{t.answerFailed(h, t.lost)}
	default:
		delete(t.lines, h.message.Key) // what fails from now on is another failure, of which the relay has to hear anew
		h.unwatch = context.AfterFunc(h.ctx, func() { t.expire(h) })
		answers = t.assign(h)
	}
	if t.table != nil && now.Sub(t.table.readAt) > tableAge && !t.refreshing {
		t.refreshing = true
		t.publisher.running.Go(t.refreshInTime)
	}
	t.mu.Unlock()
	if len(answers) > 0 {
		go t.callBack(answers) // never from inside Enqueue: the caller may hold what done needs
	}
}

// assign gives a message to its partition, once it is known which that is.
func (t *topic) assign(h *handOver) []answer {
	if t.table == nil || t.grown != nil {
		t.arriving = append(t.arriving, h)
		if t.table == nil && !t.finding {
			t.finding = true
			t.publisher.running.Go(t.find)
		}
		return nil
	}
	if size, limit := batchOverhead+recordLen(h.size, 0), t.limit(); size > limit {
		return t.fail(h, tooLarge(size, limit))
	}
	number := t.partitioner.Partition(&kgo.Record{Key: []byte(h.message.Key)}, len(t.partitions))
	h.at = t.partitions[number]
	h.at.queue = append(h.at.queue, h)
	h.at.start()
	return nil
}

// limit is the largest that a message may be.
func (t *topic) limit() int {
	switch ours, theirs := t.publisher.config.MaxMessageBytes, t.table.limit; {
	case ours == 0 && theirs == 0:
		return defaultMaxMessageBytes
	case ours == 0:
		return theirs
	case theirs == 0:
		return ours
	default:
		return min(ours, theirs)
	}
}

// fail answers a message with its error, and all behind it with [ErrBehindFailure].
func (t *topic) fail(h *handOver, cause error) []answer {
	answers := []answer{t.answerFailed(h, cause)}
	behind := h.at == nil && !slices.Contains(t.arriving, h) // it is being placed: what has arrived came later
	follow := func(queue []*handOver) {
		for _, each := range queue {
			switch {
			case each == h:
				behind = true
			case behind && !each.answered && each.message.Key == h.message.Key:
				answers = append(answers, t.answerFailed(each, ErrBehindFailure))
			}
		}
	}
	if h.at != nil {
		if h.at.batch != nil {
			follow(h.at.batch.records)
		}
		follow(h.at.queue)
	}
	follow(t.arriving)
	return answers
}

func unanswered(queue []*handOver) []*handOver {
	return slices.DeleteFunc(queue, func(h *handOver) bool { return h.answered })
}

// giveUp fails all that the topic has.
func (t *topic) giveUp(err error) {
	t.mu.Lock()
	answers := t.failAll(err, t.partitions, true)
	t.mu.Unlock()
	t.callBack(answers)
}

// failAll fails all that these partitions have, and what waits for its partition if told so.
func (t *topic) failAll(err error, partitions []*partition, arriving bool) (answers []answer) {
	all := func(queue []*handOver) {
		for _, h := range queue {
			if !h.answered {
				answers = append(answers, t.answerFailed(h, err))
			}
		}
	}
	for _, p := range partitions {
		if p.batch != nil {
			all(p.batch.records)
		}
		all(p.queue)
		p.queue = nil
	}
	if arriving {
		all(t.arriving)
		t.arriving = nil
	}
	return answers
}

// expire answers a message whose context ended. What is under way may still be stored; what is not is not sent any
// more.
func (t *topic) expire(h *handOver) {
	t.mu.Lock()
	if h.answered {
		t.mu.Unlock()
		return
	}
	last := t.lastErr
	if h.at != nil {
		last = h.at.lastErr
	}
	answers := t.fail(h, gaveUp(h.ctx, last))
	t.mu.Unlock()
	t.callBack(answers)
}

// find looks for the topic, for as long as somebody waits for it.
func (t *topic) find() {
	for try := 0; ; try++ {
		found, err := t.request()
		t.mu.Lock()
		if err == nil {
			answers := t.use(found)
			t.finding = false
			t.mu.Unlock()
			t.callBack(answers)
			return
		}
		t.lastErr = err
		var answers []answer
		if !passes(err) {
			answers = t.failAll(&publish.TopicError{Err: named(t.name, err)}, nil, true)
		}
		t.arriving = unanswered(t.arriving)
		done := len(t.arriving) == 0
		t.finding = !done
		t.mu.Unlock()
		t.callBack(answers)
		if done {
			return
		}
		if wait.For(t.publisher.work, backoff(try)) != nil {
			t.giveUp(&publish.TopicError{Err: fmt.Errorf("kafka: %w", errClosing)})
		}
	}
}

// use makes a table the one that counts, and hands out what has waited for it.
func (t *topic) use(found *table) (answers []answer) {
	var arriving []*handOver
	for _, p := range t.partitions {
		arriving = append(arriving, p.queue...) // only where another topic has this name now
		p.queue = nil
	}
	arriving = append(arriving, t.arriving...)
	if t.table != nil && t.table.id != found.id { // it knows nothing of what the one before it was sent
		t.partitions = nil
	}
	for number := len(t.partitions); number < len(found.leaders); number++ {
		t.partitions = append(t.partitions, &partition{topic: t, number: int32(number)})
	}
	t.partitions = t.partitions[:len(found.leaders)]
	t.table, t.grown, t.lastErr, t.arriving = found, nil, nil, arriving
	for len(t.arriving) > 0 {
		h := t.arriving[0]
		if t.arriving = t.arriving[1:]; !h.answered { // one before it may have failed
			h.at = nil
			answers = append(answers, t.assign(h)...)
		}
	}
	return answers
}

// refresh asks for the table again, unless somebody has since.
func (t *topic) refresh(since time.Time) error {
	t.reading.Lock()
	defer t.reading.Unlock()
	t.mu.Lock()
	fresh := t.table.readAt.After(since)
	t.mu.Unlock()
	if fresh {
		return nil
	}
	found, err := t.requestTable()
	if err != nil {
		return err
	}
	t.mu.Lock()
	var answers []answer
	if t.grown == nil && t.table.id == found.id && len(t.partitions) == len(found.leaders) {
		t.table = found
	} else if t.grown = found; t.idle() {
		answers = t.use(found)
	}
	t.mu.Unlock()
	t.callBack(answers)
	return nil
}

func (t *topic) refreshInTime() {
	err := t.refresh(time.Now())
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refreshing = false
	if err != nil { // whoever sends hears of it soon enough
		t.table.readAt = time.Now()
	}
}

// idle tells whether no partition has anything to do.
func (t *topic) idle() bool {
	return !slices.ContainsFunc(t.partitions, func(p *partition) bool { return p.running })
}

// request asks the cluster for the topic.
func (t *topic) request() (*table, error) {
	t.reading.Lock()
	defer t.reading.Unlock()
	return t.requestTable()
}

func (t *topic) requestTable() (*table, error) {
	ctx, cancel := context.WithTimeout(t.publisher.work, questionTimeout)
	defer cancel()
	at := time.Now()
	question := kmsg.NewPtrMetadataRequest()
	about := kmsg.NewMetadataRequestTopic()
	about.Topic = &t.name
	question.Topics = append(question.Topics, about)
	answer, err := question.RequestWith(ctx, t.publisher.client)
	if err != nil {
		return nil, err //nolint:wrapcheck // whoever asks says about which topic
	}
	if len(answer.Topics) != 1 {
		return nil, fmt.Errorf("the answer is about %d topics", len(answer.Topics))
	}
	said := answer.Topics[0]
	if err := errorOf(said.ErrorCode, nil); err != nil {
		return nil, missing(err)
	}
	if len(said.Partitions) == 0 {
		return nil, errors.New("it has no partitions yet")
	}
	found := &table{id: said.TopicID, readAt: at, leaders: make([]int32, len(said.Partitions))}
	for _, partition := range said.Partitions {
		if int(partition.Partition) >= len(found.leaders) {
			return nil, errors.New("some of its partitions are not told of")
		}
		found.leaders[partition.Partition] = partition.Leader
	}
	found.limit = t.publisher.topicLimit(ctx, t.name)
	return found, nil
}

// topicLimit reads how large a batch of the topic may be, and returns 0 where that may not be read.
func (p *Publisher) topicLimit(ctx context.Context, name string) int {
	settings, err := readSettings(ctx, p.client, name)
	if err != nil {
		return 0
	}
	return settings.maxMessageBytes
}

var errNoLeader = errors.New("the partition has no leader")
