package kafka

import (
	"context"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/publish"
)

// partition sends the messages of one partition in order, one batch at a time. What comes meanwhile is the next
// batch, so a busy partition has large ones.
//
// A batch that was not answered is sent again as it was, under the same number, until its messages are given up:
// the broker knows it again. When one of its messages is given up, nobody knows whether the batch is stored, and
// what is left of it goes under a new epoch of the producer's: as soon as a broker has stored something of that, it
// refuses what may still come of the old one. The topic's mutex guards it.
type partition struct {
	topic   *topic
	number  int32
	queue   []*handOver
	batch   *batch // is under way, or is to be sent again
	running bool
	most    int   // messages in the next batch, after one was refused; 0: any number
	lastErr error // why the batch is sent again
	// failures are those in a row after which the partition tries again by itself.
	failures int

	producer int64
	known    bool // the broker has heard of the producer
	epoch    int16
	sequence int32
	acked    int64 // the offset behind the last acknowledged message
}

// start has a goroutine work on the partition until there is nothing to do.
func (p *partition) start() {
	if !p.running {
		p.running = true
		p.topic.publisher.running.Go(p.run)
	}
}

func (p *partition) run() {
	t := p.topic
	for {
		t.mu.Lock()
		b := p.next()
		if b == nil {
			p.running = false
			var answers []answer
			if t.grown != nil && t.idle() {
				answers = t.use(t.grown)
			}
			t.mu.Unlock()
			t.callBack(answers)
			return
		}
		leader, readAt := t.table.leaders[p.number], t.table.readAt
		t.mu.Unlock()
		said := p.send(t.publisher.work, b, leader)
		if said.stale { // before anything is sent again
			if err := t.refresh(readAt); err != nil && !passes(err) {
				said.meaning, said.err = ofTopic, err
			}
		}
		t.mu.Lock()
		answers := p.settle(b, said)
		failures := p.failures
		t.mu.Unlock()
		t.callBack(answers)
		if failures > 0 {
			_ = wait.For(t.publisher.work, backoff(failures-1)) // the work's end is noticed at the next try
		}
	}
}

// backoff is how long to wait before a try after so many.
func backoff(tries int) time.Duration { return min(20*time.Millisecond<<min(tries, 6), time.Second) }

// next is the batch to send now; nil: there is none.
func (p *partition) next() *batch {
	if grown := p.topic.grown; grown != nil && grown.id != p.topic.table.id {
		if p.batch != nil {
			p.requeue(p.batch)
		}
		return nil
	}
	if p.batch != nil {
		left := unanswered(append([]*handOver(nil), p.batch.records...))
		if len(left) == len(p.batch.records) {
			return p.batch
		}
		if p.batch.unsure {
			p.renew()
		}
		p.queue, p.batch = append(left, p.queue...), nil
	}
	p.queue = unanswered(p.queue)
	count, size, limit := 0, batchOverhead, min(p.topic.limit(), maxBatchBytes)
	for count < len(p.queue) && count < maxBatchRecords && (p.most == 0 || count < p.most) {
		if size += recordLen(p.queue[count].size, count); count > 0 && size > limit {
			break
		}
		count++
	}
	if count == 0 {
		return nil
	}
	p.batch = &batch{records: append([]*handOver(nil), p.queue[:count]...)}
	p.queue = p.queue[count:]
	return p.batch
}

// renew begins a new epoch of the producer's: what a broker may still get of the old one it refuses from then on.
func (p *partition) renew() {
	if p.sequence = 0; p.epoch < math.MaxInt16-1 {
		p.epoch++
		return
	}
	p.topic.publisher.forget(p.producer)
	p.known = false
}

// send sends a batch and says what became of it.
func (p *partition) send(ctx context.Context, b *batch, leader int32) outcome {
	publisher := p.topic.publisher
	id, err := publisher.identify(ctx)
	if err != nil {
		return notAnswered(err, false)
	}
	if leader < 0 {
		return outcome{meaning: again, err: errNoLeader, stale: true}
	}
	if b.encoded == nil {
		p.topic.mu.Lock()
		if !p.known || p.producer != id {
			p.producer, p.known, p.epoch, p.sequence = id, true, 0, 0
		}
		b.sequence = p.sequence
		epoch := p.epoch
		p.topic.mu.Unlock()
		b.encode(id, epoch, time.Now(), publisher.compressor)
	}
	answer, err := p.request(b).RequestWith(ctx, publisher.client.Broker(int(leader)))
	if err != nil {
		return notAnswered(err, true)
	}
	if len(answer.Topics) != 1 || len(answer.Topics[0].Partitions) != 1 {
		return outcome{meaning: again, err: errNoAnswer, unsure: true, stale: true}
	}
	return meaningOf(&answer.Topics[0].Partitions[0])
}

func (p *partition) request(b *batch) *kmsg.ProduceRequest {
	part := kmsg.NewProduceRequestTopicPartition()
	part.Partition, part.Records = p.number, b.encoded
	to := kmsg.NewProduceRequestTopic()
	to.Topic, to.Partitions = p.topic.name, append(to.Partitions, part)
	p.topic.mu.Lock()
	to.TopicID = p.topic.table.id
	p.topic.mu.Unlock()
	request := kmsg.NewPtrProduceRequest()
	request.Acks, request.TimeoutMillis = -1, int32(p.topic.publisher.config.Timeout.Milliseconds())
	request.Topics = append(request.Topics, to)
	return request
}

// settle answers the messages of a batch, or leaves it to be sent again.
func (p *partition) settle(b *batch, said outcome) (answers []answer) {
	t := p.topic
	b.unsure = b.unsure || said.unsure
	p.lastErr = said.err
	if p.failures++; said.meaning != again && said.meaning != unknownProducer && said.meaning != dataLost {
		p.failures = 0
	}
	switch said.meaning {
	case stored:
		p.sequence = int32((uint32(b.sequence) + uint32(len(b.records))) & math.MaxInt32)
		p.batch, p.acked = nil, said.offset+int64(len(b.records))
		if p.most *= 2; p.most > maxBatchRecords {
			p.most = 0
		}
		for _, h := range b.records {
			if !h.answered {
				h.answered = true
				answers = append(answers, answer{to: h})
			}
		}
	case again:
		if t.publisher.work.Err() != nil {
			answers = p.failAll(&publish.TopicError{Err: said.err})
		}
	case ofMessage:
		answers = p.rejected(b, said)
	case ofTopic:
		answers = p.failAll(&publish.TopicError{Err: named(t.name, said.err)})
	case unknownProducer:
		p.known = false
		t.publisher.forget(p.producer)
		p.requeue(b)
	case dataLost:
		answers = p.dataLost(b, said)
	default:
		answers = p.failAll(named(t.name, said.err))
	}
	return answers
}

// rejected finds who is at fault in a batch that was refused whole. Where the broker does not say, half of the
// batch is sent next, and so on, until one message is alone with its error.
func (p *partition) rejected(b *batch, said outcome) (answers []answer) {
	if b.unsure { // an earlier try may have been stored after all
		p.renew()
	}
	if len(b.records) == 1 {
		said.culprits = map[int]error{0: said.err}
	}
	known := false
	for at, h := range b.records { // in order: what is behind the first of a key is not charged
		err, is := said.culprits[at]
		if known = known || is; is && !h.answered {
			answers = append(answers, p.topic.fail(h, named(p.topic.name, err))...)
		}
	}
	if !known {
		p.most = max(1, len(b.records)/2)
	}
	p.requeue(b)
	return answers
}

// requeue puts what is left of a batch back to where it came from.
func (p *partition) requeue(b *batch) {
	p.queue = append(unanswered(append([]*handOver(nil), b.records...)), p.queue...)
	p.batch = nil
}

// failAll fails what the partition has.
func (p *partition) failAll(err error) []answer {
	answers := p.topic.failAll(err, []*partition{p}, false)
	if p.batch.unsure {
		p.renew()
	}
	p.batch = nil
	return answers
}

// dataLost decides what follows when a broker misses what was acknowledged.
func (p *partition) dataLost(b *batch, said outcome) []answer {
	t := p.topic
	switch {
	case p.acked > 0 && said.start >= p.acked:
		// Its time had come, and with it went what the broker knew of this producer.
	case !t.publisher.config.ContinueAfterDataLoss:
		t.lost = lostError(t.name, p.number, said.err)
		answers := t.failAll(t.lost, t.partitions, true)
		p.batch = nil
		return answers
	}
	p.renew()
	p.requeue(b)
	return nil
}
