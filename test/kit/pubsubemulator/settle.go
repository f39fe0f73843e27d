package pubsubemulator

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// What the service says of an ack id of a subscription with exactly-once delivery.
const (
	ackFailure      = "EXACTLY_ONCE_ACKID_FAILURE"
	invalidAckID    = "PERMANENT_FAILURE_INVALID_ACK_ID"
	unorderedAckID  = "TRANSIENT_FAILURE_UNORDERED_ACK_ID"
	pubsubDomain    = "pubsub.googleapis.com"
	ackFailureWords = "Some acknowledgement ids in the request were invalid. This could be because the acknowledgement" +
		" ids have expired or the acknowledgement ids were malformed."
)

// find returns the message that ackID stands for, or nil when it is not of the latest delivery: too late,
// acknowledged already, or given out before a restart.
func (s *subscription) find(ackID string) *item {
	id, _, _ := strings.Cut(ackID, ":")
	if it := s.items[id]; it != nil && it.ackID == ackID {
		return it
	}
	return nil
}

// settle acknowledges deliveries, in the journal first: an acknowledgement that was confirmed must
// not come back after a restart. Ids that mean nothing any more are ignored, unless delivery is exactly once.
func (b *broker) settle(sub *subscription, ackIDs []string) error {
	now := time.Now()
	b.advance(sub, now)
	items, failures := sub.pick(ackIDs)
	if sub.proto.GetEnableExactlyOnceDelivery() {
		items = sub.inOrder(items, failures)
	}
	if len(items) > 0 {
		ids := make([]string, len(items))
		for i, it := range items {
			ids[i] = it.record.ID
		}
		if err := b.journal.appendAck(sub.proto.GetName(), ids); err != nil {
			return status.Errorf(codes.Internal, "the acknowledgement was not journalled: %v", err)
		}
		for _, it := range items {
			sub.finish(it, acked, now)
		}
		sub.wake() // a stream has room again, a line is free
	}
	return failures.status()
}

// extend moves the deadline of deliveries; zero seconds gives them back, which is a nack.
func (b *broker) extend(sub *subscription, ackIDs []string, seconds int32) error {
	now := time.Now()
	b.advance(sub, now)
	items, failures := sub.pick(ackIDs)
	for _, it := range items {
		if it.state != out {
			continue
		}
		if seconds == 0 {
			sub.fail(it, now, b.longestBackoff)
			it.ackID = ""
			continue
		}
		it.deadline = now.Add(time.Duration(seconds) * time.Second)
		heap.Push(&sub.leases, lease{item: it, deadline: it.deadline})
	}
	if seconds == 0 {
		sub.wake()
	}
	return failures.status()
}

// pick finds what ack ids stand for, the oldest first: clients send them in any order. With exactly-once delivery it
// says which mean nothing, and an id whose deadline has passed does not.
func (s *subscription) pick(ackIDs []string) ([]*item, ackFailures) {
	exactlyOnce := s.proto.GetEnableExactlyOnceDelivery()
	failures := ackFailures{}
	var items []*item
	for _, ackID := range ackIDs {
		it := s.find(ackID)
		switch {
		case it != nil && (it.state == out || !exactlyOnce):
			items = append(items, it)
		case exactlyOnce:
			failures[ackID] = invalidAckID
		}
	}
	slices.SortFunc(items, func(a, b *item) int { return cmp.Compare(a.record.Seq, b.record.Seq) })
	return slices.Compact(items), failures
}

// inOrder leaves out what is behind a message that is not acknowledged: with exactly-once delivery an acknowledgement
// is final, so the service takes those of a key in their order.
func (s *subscription) inOrder(items []*item, failures ackFailures) []*item {
	taken := map[*line]int{}
	return slices.DeleteFunc(items, func(it *item) bool {
		l, n := it.line, taken[it.line]
		for l.items[n].state >= acked {
			n++
		}
		if l.items[n] == it {
			taken[l] = n + 1
			return false
		}
		failures[it.ackID] = unorderedAckID
		return true
	})
}

// ackFailures is what became of ack ids, by id.
type ackFailures map[string]string

// status is the service's answer: an error with a detail that names the ids. Those that it does not name are done.
func (f ackFailures) status() error {
	if len(f) == 0 {
		return nil
	}
	st, err := status.New(codes.InvalidArgument, ackFailureWords).WithDetails(&errdetails.ErrorInfo{
		Reason: ackFailure, Domain: pubsubDomain, Metadata: f,
	})
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return st.Err()
}
