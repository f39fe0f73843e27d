package console

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
)

// arrival is a message as the broker took it.
type arrival struct {
	id         outbox.ID
	seq        int64
	topic, key string
	body       string
	reissueOf  string
	copyOf     bool // of a published event
}

// broker is that of the shop. It has its faults until somebody repairs it.
type broker struct {
	// shipmentsWork, emailsWork, invoicesWork and couponsWork are what was repaired.
	shipmentsWork, emailsWork, invoicesWork, couponsWork atomic.Bool

	mu   sync.Mutex
	list []arrival
}

// publish takes a message, or says why not.
func (b *broker) publish(_ context.Context, m *publish.Message) error {
	if err := b.fault(m); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.list = append(b.list, arrival{
		m.ID, m.Seq, m.Topic, m.Key, string(m.Body), m.Attributes["reissue_of"], m.Request != 0,
	})
	return nil
}

func (b *broker) fault(m *publish.Message) error {
	switch body := string(m.Body); {
	case m.Topic == shipmentsTopic && !b.shipmentsWork.Load():
		return &publish.TopicError{Err: errors.New("dial tcp 10.4.1.17:4222: connect: connection refused")}
	case m.Topic == emailsTopic && strings.Contains(body, "example.net") && !b.emailsWork.Load():
		return &publish.RejectedError{Err: errors.New("mail gateway: 451 greylisted, try again later")}
	case m.Topic == invoicesTopic && strings.Contains(body, `"EURO"`) && !b.invoicesWork.Load():
		return &publish.TerminalError{Reason: publish.ReasonRejected, Err: errors.New(
			"schema invoices-v3: /currency: value must be one of EUR, USD, GBP")}
	case m.Topic == couponsTopic && strings.Contains(body, "expired") && !b.couponsWork.Load():
		return &publish.TerminalError{Reason: publish.ReasonRejected, Err: errors.New("the campaign of this coupon is over")}
	}
	return nil
}

// arrivals are those so far.
func (b *broker) arrivals() []arrival {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]arrival(nil), b.list...)
}

// count is how many messages have come that are like this.
func (b *broker) count(like func(arrival) bool) (n int) {
	for _, a := range b.arrivals() {
		if like(a) {
			n++
		}
	}
	return n
}

// disorder counts messages that came behind later ones of their aggregate and topic. Invoices that had died are lines
// of their own: the others did not wait for them.
func (b *broker) disorder() (n int) {
	last := map[[3]string]int64{}
	for _, a := range b.arrivals() {
		if a.copyOf {
			continue
		}
		line := [3]string{a.topic, a.key}
		if a.topic == invoicesTopic && strings.Contains(a.body, `"EURO"`) {
			line[2] = "redriven"
		}
		if a.seq < last[line] {
			n++
		}
		last[line] = max(last[line], a.seq)
	}
	return n
}
