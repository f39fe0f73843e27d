package pubsubemulator

import (
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
)

// defaultAckDeadline is the service's deadline for a subscription that sets none.
const defaultAckDeadline = 10 * time.Second

// subscription is what a subscription has still to deliver, and to whom.
//
// Its messages stand in lines: those of an ordering key in one, and each other message in a line of its own. A line
// is sent in order, and any number of its messages may be out at a time, all of them to one holder: that is how
// Google's service keeps the order. See line for what happens when one of them comes back.
type subscription struct {
	// proto is pstest's own record, so that changes of the configuration need no copying.
	proto *pb.Subscription
	topic *topic

	items map[string]*item // what is not done, by message id
	lines map[string]*line // by ordering key; lines of one message are not in it
	// unacknowledged counts the items that nobody has acknowledged.
	unacknowledged int

	free   lineHeap  // lines that anybody may have
	later  lineHeap  // lines whose next message waits for its time
	leases leaseHeap // what is out, by deadline

	// waiters are told when there may be something to pull.
	waiters map[chan struct{}]struct{}
}

// item is a message on one subscription.
type item struct {
	record *Message
	line   *line
	state  itemState
	// failures counts the nacks and the deadlines that have passed: what dead lettering counts.
	failures int32
	// sent counts the deliveries; an ack id is made of it.
	sent int
	// ackID is what the latest delivery may be acknowledged with. Empty after a nack: an id from
	// before it must not acknowledge the delivery that follows.
	ackID    string
	deadline time.Time // of the lease, while it is out
	due      int64     // not to be delivered before, in nanoseconds since 1970
}

// itemState says where a message is.
type itemState int

const (
	waiting itemState = iota // to be delivered
	out                      // delivered, with a lease
	acked                    // behind one that is not: it comes again if that one does
	gone                     // done for good
)

// holder is one who has messages: a stream, or a single pull.
type holder struct {
	ready       lineHeap // lines of which it has messages, and which have more
	outstanding int
	bytes       int
	closed      bool // it takes no more

	// maxOutstanding and maxBytes are the subscriber's flow control; zero is none.
	maxOutstanding, maxBytes int
}

// full tells whether the subscriber takes no more now. A message that was nacked or whose deadline has
// passed is no longer the subscriber's.
func (h *holder) full() bool {
	return h.maxOutstanding > 0 && h.outstanding >= h.maxOutstanding || h.maxBytes > 0 && h.bytes >= h.maxBytes
}

func newSubscription(proto *pb.Subscription, of *topic) *subscription {
	return &subscription{
		proto: proto, topic: of,
		items: map[string]*item{}, lines: map[string]*line{}, waiters: map[chan struct{}]struct{}{},
	}
}

// add puts a message at the end of its line.
func (s *subscription) add(record *Message, now time.Time) {
	l := s.lines[record.OrderingKey]
	if l == nil {
		l = &line{}
		if s.proto.GetEnableMessageOrdering() && record.OrderingKey != "" {
			l.key = record.OrderingKey
			s.lines[l.key] = l
		}
	}
	it := &item{record: record, line: l}
	l.items = append(l.items, it)
	s.items[record.ID] = it
	s.unacknowledged++
	s.schedule(l, now)
}

// clear drops everything.
func (s *subscription) clear() {
	s.items, s.lines, s.unacknowledged = map[string]*item{}, map[string]*line{}, 0
	s.free, s.later, s.leases = nil, nil, nil
}

// ackDeadline is the subscription's own deadline.
func (s *subscription) ackDeadline() time.Duration {
	if seconds := s.proto.GetAckDeadlineSeconds(); seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	return defaultAckDeadline
}

// The service's backoff where a retry policy does not say.
const (
	defaultMinimumBackoff = 10 * time.Second
	defaultMaximumBackoff = 10 * time.Minute
)

// backoff is how long a message waits that has failed that many times.
func (s *subscription) backoff(failures int32, longest time.Duration) time.Duration {
	policy := s.proto.GetRetryPolicy()
	if policy == nil {
		return 0
	}
	delay, limit := defaultMinimumBackoff, defaultMaximumBackoff
	if policy.GetMinimumBackoff() != nil {
		delay = policy.GetMinimumBackoff().AsDuration()
	}
	if policy.GetMaximumBackoff() != nil {
		limit = policy.GetMaximumBackoff().AsDuration()
	}
	if longest > 0 {
		limit = min(limit, longest)
	}
	for i := int32(1); i < failures && delay < limit; i++ {
		delay *= 2
	}
	return min(delay, limit)
}

// wake tells the waiters of the subscription to look again.
func (s *subscription) wake() {
	for waiter := range s.waiters {
		select {
		case waiter <- struct{}{}:
		default: // it has been told already
		}
	}
}

// wait registers a waiter; the function ends it.
func (b *broker) wait(sub *subscription) (<-chan struct{}, func()) {
	waiter := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	sub.waiters[waiter] = struct{}{}
	return waiter, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(sub.waiters, waiter)
	}
}
