package relay

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// pulse is when the relay last did something, be it to find out that it must wait.
type pulse struct {
	began time.Time
	since atomic.Int64 // nanoseconds from began
}

func (p *pulse) beat() { p.since.Store(int64(time.Since(p.began))) }

// Turned is when the relay's loop last turned. While Run runs that is never long ago, whether or not the database
// and the broker answer: at most 10 s and a third of the lease. It may be called at any time.
func (r *Relay) Turned() time.Time { return r.pulse.began.Add(time.Duration(r.pulse.since.Load())) }

// pausedRoutes are the topics whose breaker is open, with the error that opened it.
type pausedRoutes struct {
	mutex  sync.Mutex
	topics map[string]string
}

func (p *pausedRoutes) add(topic, detail string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.topics == nil {
		p.topics = map[string]string{}
	}
	p.topics[topic] = detail
}

func (p *pausedRoutes) remove(topic string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.topics, topic)
}

func (p *pausedRoutes) clear() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	clear(p.topics)
}

// PausedTopics returns the topics that carry nothing now, with the error that paused each. It may be called at any
// time.
func (r *Relay) PausedTopics() map[string]string {
	r.paused.mutex.Lock()
	defer r.paused.mutex.Unlock()
	return maps.Clone(r.paused.topics)
}
