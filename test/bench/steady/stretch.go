package steady

import (
	"slices"
	"time"
)

// A Stretch is a part of the time in which events flowed. Its events are those that were committed within it.
type Stretch struct {
	Offered       float64 // events per second
	P50, P99, Max time.Duration
	Late          time.Duration // how far the producers were behind their times, at the 99th percentile
}

// Measure reads the load's notes of a stretch, from and to on its clock. An event that has not arrived counts with the
// time that it has waited.
func (l *Load) Measure(from, to int64) Stretch {
	var latencies, late []time.Duration
	now := l.Since()
	for i := range l.committed {
		committed, acked := l.committed[i].Load(), l.acked[i].Load()
		if committed < from || committed >= to {
			continue
		}
		if acked == 0 {
			acked = now
		}
		latencies = append(latencies, time.Duration(max(acked-committed, 0)))
		late = append(late, time.Duration(l.late[i/l.plan.PerTx].Load()))
	}
	return Stretch{
		Offered: float64(len(latencies)) / time.Duration(to-from).Seconds(),
		P50:     quantile(latencies, 0.5), P99: quantile(latencies, 0.99), Max: quantile(latencies, 1),
		Late: quantile(late, 0.99),
	}
}

func quantile(list []time.Duration, q float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[int(q*float64(len(list)-1))]
}
