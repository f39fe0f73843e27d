package sim

import (
	"time"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// bellStorm: however often the bell is rung, reads keep their distance.
func bellStorm(short bool) []Figure {
	bells := 1_000_000
	if short {
		bells = 100_000
	}
	p := calm(7)
	p.aggregates = 1
	w := newWorld(p, Plant{}, nil)
	l := w.join(false)
	w.pass(10 * time.Second)
	before := l.calls[core.OpRead]
	length := time.Duration(bells) * 100 * time.Microsecond
	rung := 0
	var ring func()
	ring = func() {
		l.input(func() { l.core.Bell(w.now) })
		if rung++; rung < bells {
			w.after(100*time.Microsecond, ring)
		}
	}
	ring()
	w.pass(length)
	reads := int64(l.calls[core.OpRead] - before)
	wrong, _ := w.finish(time.Second)
	return []Figure{
		atLeast("bells", int64(rung), int64(bells)),
		atMost("bells_reads", reads, int64(2*length/p.config.MinPoll)+10),
		exactly("bells_wrong", wrong, 0),
	}
}

// bellAtNight: the bell wakes a relay that has found nothing for so long that it sleeps its longest.
func bellAtNight(bool) []Figure {
	sleep := func(ring bool) (took time.Duration, wrong int64) {
		p := calm(8)
		p.aggregates = 1
		p.config.Poll = 9 * time.Second
		w := newWorld(p, Plant{}, nil)
		w.join(false)
		w.pass(10*time.Minute + 3*time.Second)
		w.bulk(1, func(int) *kind { return &p.kinds[0] })
		if ring {
			w.ring()
		}
		begin := w.now
		w.run(w.now+time.Minute, func() bool { return w.record.arrivals > 0 })
		took = w.now - begin
		wrong, _ = w.finish(time.Minute)
		return took, wrong
	}
	silent, wrong := sleep(false)
	rung, wrongToo := sleep(true)
	return []Figure{
		atMost("asleep_rung_ms", rung.Milliseconds(), 100),
		atLeast("asleep_silent_ms", silent.Milliseconds(), rung.Milliseconds()+1),
		exactly("asleep_wrong", wrong+wrongToo, 0),
	}
}
