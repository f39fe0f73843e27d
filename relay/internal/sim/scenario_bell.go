package sim

import (
	"time"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// manyBells: however often the bell is rung for nothing, reads keep their distance.
func manyBells(short bool) []Figure {
	bells := 1_000_000
	if short {
		bells = 100_000
	}
	p := faultless(7)
	p.aggregates = 1
	sim := newSimulation(p, Mutant{}, nil)
	relay := sim.join(false)
	sim.pass(10 * time.Second)
	before := relay.calls[core.OpRead]
	length := time.Duration(bells) * 100 * time.Microsecond
	rung := 0
	var ring func()
	ring = func() {
		relay.input(func() { relay.core.Bell(sim.now) })
		if rung++; rung < bells {
			sim.after(100*time.Microsecond, ring)
		}
	}
	ring()
	sim.pass(length)
	reads := int64(relay.calls[core.OpRead] - before)
	wrong, _ := sim.finish(time.Second)
	return []Figure{
		atLeast("bells", int64(rung), int64(bells)),
		atMost("bells_reads", reads, int64(length/(20*time.Millisecond))+10),
		exactly("bells_wrong", wrong, 0),
	}
}

// bellAtNight: the bell wakes a relay that has found nothing for so long that it sleeps its longest.
func bellAtNight(bool) []Figure {
	sleep := func(ring bool) (took time.Duration, wrong int64) {
		p := faultless(8)
		p.aggregates = 1
		p.config.Poll = 9 * time.Second
		sim := newSimulation(p, Mutant{}, nil)
		sim.join(false)
		sim.pass(10*time.Minute + 3*time.Second)
		sim.bulk(1, func(int) *kind { return &p.kinds[0] })
		if ring {
			sim.ring()
		}
		begin := sim.now
		sim.run(sim.now+time.Minute, func() bool { return sim.record.arrivals > 0 })
		took = sim.now - begin
		wrong, _ = sim.finish(time.Minute)
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
