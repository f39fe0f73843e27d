package sim

import "time"

// The seeds of a day are as many as that, all above what anybody counts to from 1.
const (
	seedsOfADay = 500
	firstOfDays = 1_000_000
)

// FailedOnce lists seeds that have found a mistake of the relay. Each form of the proof runs them, so that the mistake
// does not come back.
func FailedOnce() []uint64 {
	return []uint64{
		200010, 200011, 200023, 200030, // timeout_by_size: the same large read again forever, and events were stuck
		438, 514, 11386850, // reads of a topic's own reader, which found nothing, let the main read grow until it timed out
		// failover, floor_in_gap, prepared_kept: what was known of one server was used on the next
		5003, 5047, 5074, 5106, 5119,
		// backend_killed: what a recovery took back was published, because the barrier took the server for the same one
		5120, 242,
		251,       // relay_killed, over_deadline: the event of a topic that hangs was taken for what killed the relays
		4859,      // a retry that was given up charged an event anew, after a redrive
		454, 4766, // poison: quarantine ended while the marked event was in flight, and it was charged for another one
		1640, 11386524, // a retry, and a death, came too late for the row, and were taken for written down
		// too much in all lanes: fewer rows were asked of one after the other, with a longer pause each time
		676, 3087, 900833, 21049, 30967, 200955,
		// failover: a lane that was released on the old primary was the relay's again, which did not know it
		902371, 902753, 902769,
		900876, // clock_forward: the only relay took itself for dead
		3951,   // timeout_by_size: windows without events were taken for lanes that bear to be read
		504,    // relay_paused: lanes were taken into use that an acquisition had brought after the lease
	}
}

// SeedsOf returns the seeds of a day: others every day, and the same for whoever names the day.
func SeedsOf(day time.Time) []uint64 {
	first := firstOfDays + uint64(day.Unix()/int64(24*time.Hour/time.Second))*seedsOfADay
	seeds := make([]uint64, 0, seedsOfADay)
	for n := range uint64(seedsOfADay) {
		seeds = append(seeds, first+n)
	}
	return seeds
}

// all lists the seeds of a proof, first those that may be what somebody waits for.
func (o *Options) all() []uint64 {
	seeds := FailedOnce()
	if !o.Day.IsZero() {
		seeds = append(seeds, SeedsOf(o.Day)...)
	}
	for n := range uint64(o.Seeds) {
		seeds = append(seeds, o.From+n)
	}
	return seeds
}
