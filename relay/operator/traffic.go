package operator

import (
	"context"
	"time"

	"github.com/posthaste-dev/posthaste/relay/internal/minutes"
)

// MaxMinutes is how far back [Operator.Traffic] looks at most: rows are deleted then.
const MaxMinutes = 72 * 60

// mostTopics is the most that a list of topics has.
const mostTopics = 1_000

// Counts are what relays that survey wrote down of some minutes.
type Counts struct {
	Arrived   int64 `json:"arrived"`
	Published int64 `json:"published"`
	Died      int64 `json:"died"`
	// Attempts that failed, by class.
	Rejected   int64 `json:"rejected"`
	Terminal   int64 `json:"terminal"`
	TopicFault int64 `json:"topicFault"`
	Unknown    int64 `json:"unknown"`
	// Latencies are how many of the published ones took so long, from their transaction until they were settled. The
	// bounds are those of [LatencyBounds], and the last bucket has none.
	Latencies []int64 `json:"latencies"`
	// Pending and Oldest are what waited at the end of the last minute for which a survey has estimated it; nil: of none
	// of these minutes that is known.
	Pending *int64   `json:"pending,omitempty"`
	Oldest  *float64 `json:"oldestSeconds,omitempty"`
}

// Traffic is what a topic carried in some minutes.
type Traffic struct {
	Counts

	Topic string `json:"topic"`
	// Minutes is how many minutes that is: fewer than were asked for where relays began to write later.
	Minutes int `json:"minutes"`
}

// Failed is how many attempts failed.
func (c *Counts) Failed() int64 { return c.Rejected + c.Terminal + c.TopicFault + c.Unknown }

// LatencyBounds are the upper bounds of all buckets of [Counts] but the last.
func LatencyBounds() []time.Duration { return minutes.Bounds[:] }

// Latency is within which time that share of the published ones was, as the bound of its bucket; over tells that it was
// longer than the last bound, known that there is any.
func (c *Counts) Latency(share float64) (bound time.Duration, over, known bool) {
	all := int64(0)
	for _, events := range c.Latencies {
		all += events
	}
	if all == 0 {
		return 0, false, false
	}
	wanted, bounds := share*float64(all), LatencyBounds()
	seen := int64(0)
	for i, events := range c.Latencies {
		if seen += events; float64(seen) >= wanted && i < len(bounds) {
			return bounds[i], false, true
		}
	}
	return bounds[len(bounds)-1], true, true
}

// fields are what the columns of traffic.sql and series.sql go into.
func (c *Counts) fields() []any {
	return []any{
		&c.Arrived, &c.Published, &c.Died, &c.Rejected, &c.Terminal, &c.TopicFault, &c.Unknown, &c.Latencies, &c.Pending,
		&c.Oldest,
	}
}

// Traffic says what each topic carried in the last so many minutes that are over, the busiest first. Where no relay
// surveys there is nothing.
func (o *Operator) Traffic(ctx context.Context, lastMinutes int) (topics []Traffic, err error) {
	lastMinutes = min(max(lastMinutes, 1), MaxMinutes)
	err = o.look(ctx, "traffic", func(l *looking) error {
		topics, err = l.traffic(ctx, lastMinutes)
		return err
	})
	return topics, err
}

func (l *looking) traffic(ctx context.Context, lastMinutes int) (topics []Traffic, err error) {
	rows, err := l.Query(ctx, l.sql("traffic"), lastMinutes, mostTopics)
	if err != nil {
		return nil, err //nolint:wrapcheck // look says what it was
	}
	defer rows.Close()
	for rows.Next() {
		var t Traffic
		if err := rows.Scan(append([]any{&t.Topic, &t.Minutes}, t.fields()...)...); err != nil {
			return nil, err //nolint:wrapcheck // look says what it was
		}
		topics = append(topics, t)
	}
	return topics, rows.Err() //nolint:wrapcheck // look says what it was
}
