package pinned

import (
	"slices"
	"time"
)

// Phase is what one stretch of load came to.
type Phase struct {
	Name   string
	Length time.Duration
	// Thirds are the acknowledged events per second in each third of the measured stretch.
	Thirds [3]float64
	// Offered is how many events were committed a second.
	Offered float64
	P50     time.Duration
	P99     time.Duration
	Max     time.Duration
	// Late is the 99th percentile of how far transactions were behind their intended times when they ended.
	Late time.Duration
	// Undelivered were not delivered when the phase was over; Inverted came before an earlier event of their
	// aggregate, Repeated more than once.
	Undelivered, Inverted, Repeated int
	// Counted are the reads that the server has counted: how many per second, their mean time and how many pages each
	// looked at.
	Counted   int64
	Reads     float64
	ReadTime  time.Duration
	ReadPages float64
	// First is from the relay's start until it had delivered the first few events.
	First time.Duration
	// Dead tuples of outbox_events at the end, as the server counts them.
	Dead int64
}

// summarise reads the tape. Events that were not delivered count with the time that they have waited.
func (r *run) summarise(p phase, t *tape, before, after reads, ended int64) *Phase {
	from, to := int64(r.plan.Settle), int64(r.plan.Settle+p.length)
	s := &Phase{
		Name: p.name, Length: p.length, Inverted: int(t.inverted.Load()), Repeated: int(t.repeated.Load()),
		Undelivered: t.undelivered(), Dead: after.dead,
	}
	var latencies []time.Duration
	third := (to - from) / 3
	for i := range t.committed {
		committed, acked := t.committed[i].Load(), t.acked[i].Load()
		if acked >= from && acked < from+3*third {
			s.Thirds[(acked-from)/third]++
		}
		if committed < from || committed >= to {
			continue
		}
		if acked == 0 {
			acked = max(ended, committed)
		}
		latencies = append(latencies, time.Duration(max(acked-committed, 0)))
	}
	for i := range s.Thirds {
		s.Thirds[i] /= time.Duration(third).Seconds()
	}
	s.Offered = float64(len(latencies)) / p.length.Seconds()
	s.P50, s.P99, s.Max = quantile(latencies, 0.5), quantile(latencies, 0.99), quantile(latencies, 1)
	s.Late = quantile(slices.Clone(t.late[int(float64(len(t.late))*float64(from)/float64(to)):]), 0.99)
	if calls := after.calls - before.calls; calls > 0 {
		s.Counted = calls
		s.Reads = float64(calls) / p.length.Seconds()
		s.ReadTime = time.Duration((after.millis - before.millis) / float64(calls) * float64(time.Millisecond))
		s.ReadPages = float64(after.blocks-before.blocks) / float64(calls)
	}
	return s
}

func quantile(list []time.Duration, q float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[int(q*float64(len(list)-1))]
}
