package relay

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// pulse is when the relay last did something. To find out that it must wait is something too.
type pulse struct {
	began time.Time
	since atomic.Int64 // nanoseconds from began
}

func (p *pulse) beat() { p.since.Store(int64(time.Since(p.began))) }

// LastTick is when the relay's loop last ran. While Run runs that is never long ago, whether or not the database
// and the broker answer: at most 10 s and a third of the lease. It may be called at any time.
func (r *Relay) LastTick() time.Time { return r.pulse.began.Add(time.Duration(r.pulse.since.Load())) }

// pausedTopics are the topics whose breaker is open, with the error that opened it.
type pausedTopics struct {
	mutex  sync.Mutex
	topics map[string]string
}

func (p *pausedTopics) add(topic, detail string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.topics == nil {
		p.topics = map[string]string{}
	}
	p.topics[topic] = detail
}

func (p *pausedTopics) remove(topic string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.topics, topic)
}

func (p *pausedTopics) clear() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	clear(p.topics)
}

// FailingTopics returns the topics that carry nothing now, with the error that paused each. Topics that only copies of
// published events go to are not among them. It may be called at any time.
func (r *Relay) FailingTopics() map[string]string {
	r.paused.mutex.Lock()
	defer r.paused.mutex.Unlock()
	return maps.Clone(r.paused.topics)
}
