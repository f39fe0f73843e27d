package operator_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/relay/operator"
)

// minute writes what a relay did for a topic in a minute: everything by its number.
func (e *env) minute(at time.Time, topic string, published int64, bucket int, pending *int64) {
	e.t.Helper()
	latencies := make([]int64, 16)
	latencies[bucket] = published
	e.exec(`INSERT INTO {schema}.outbox_minutes
		SELECT $1::timestamptz, $2, gen_random_uuid(), $3::bigint + 1, $3, 1, 2, 3, 4, 5, $4::bigint[], $5::bigint,
			$5::float8 / 2`, at, topic, published, latencies, pending)
}

// thisMinute is when it began, by the database's clock.
func (e *env) thisMinute() time.Time {
	e.t.Helper()
	var at time.Time
	if err := e.admin.QueryRow(e.t.Context(), "SELECT date_trunc('minute', clock_timestamp())").Scan(&at); err != nil {
		e.t.Fatal(err)
	}
	return at
}

// lines are the minutes before one, with their distance to it.
func lines(series []operator.Minute, before time.Time) string {
	var said []string
	for _, m := range series {
		if !m.At.Before(before) {
			continue // it is over by now
		}
		waits := "unknown"
		if m.Pending != nil && m.Oldest != nil {
			waits = fmt.Sprint(*m.Pending, " ", *m.Oldest)
		}
		half, _, known := m.Latency(0.5)
		said = append(said, fmt.Sprintf("%s: %d of %d, %d died, %d failed, p50 %s %t, waits %s", m.At.Sub(before),
			m.Published, m.Arrived, m.Died, m.Failed(), half, known, waits))
	}
	return strings.Join(said, "\n")
}

// TestSeries adds up relays and topics minute by minute, and fills in those in which nothing happened.
func TestSeries(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		if series, err := e.operator.Series(t.Context(), 60, ""); err != nil || len(series) > 0 {
			t.Errorf("nobody has written anything: %+v, %v", series, err)
		}
		now := e.thisMinute()
		ago := func(minutes int) time.Time { return now.Add(-time.Duration(minutes) * time.Minute) }
		e.minute(ago(6), "orders", 90, 2, new(int64(7)))
		e.minute(ago(6), "orders", 10, 15, new(int64(9))) // another relay
		e.minute(ago(6), "bills", 300, 0, new(int64(4)))
		e.minute(ago(4), "orders", 5, 3, nil)
		e.minute(ago(3), "bills", 1, 0, new(int64(2)))
		// However long this test takes, somebody has written the newest minute that is over.
		for i := range 60 {
			e.minute(ago(1-i), "later", 1, 0, nil)
		}
		read := func(last int, topic string) []operator.Minute {
			t.Helper()
			series, err := e.operator.Series(t.Context(), last, topic)
			if err != nil {
				t.Fatal(err)
			}
			return series
		}
		const none = "0 of 0, 0 died, 0 failed, p50 0s false, waits unknown"
		for topic, want := range map[string][]string{
			"": {
				"-6m0s: 400 of 403, 15 died, 30 failed, p50 5ms true, waits 13 4.5",
				"-5m0s: " + none,
				"-4m0s: 5 of 6, 5 died, 10 failed, p50 50ms true, waits unknown",
				"-3m0s: 1 of 2, 5 died, 10 failed, p50 5ms true, waits 2 1",
				"-2m0s: " + none,
				"-1m0s: 1 of 2, 5 died, 10 failed, p50 5ms true, waits unknown",
			},
			"orders": {
				"-6m0s: 100 of 102, 10 died, 20 failed, p50 25ms true, waits 9 4.5",
				"-5m0s: " + none,
				"-4m0s: 5 of 6, 5 died, 10 failed, p50 50ms true, waits unknown",
				"-3m0s: " + none, "-2m0s: " + none, "-1m0s: " + none,
			},
		} {
			if got := lines(read(operator.MaxMinutes+1, topic), now); got != strings.Join(want, "\n") {
				t.Errorf("of %q:\n%s\nwant\n%s", topic, got, strings.Join(want, "\n"))
			}
		}
		if three := read(3, ""); len(three) != 3 || !slices.IsSortedFunc(three, func(a, b operator.Minute) int {
			return a.At.Compare(b.At)
		}) {
			t.Errorf("the last three: %+v", three)
		}
		for _, topic := range []string{"a\x00", "\xff", strings.Repeat("x", 256)} {
			if _, err := e.operator.Series(t.Context(), 5, topic); !errors.Is(err, operator.ErrNotUnderstood) {
				t.Errorf("topic %.5q: %v", topic, err)
			}
		}
	})
}

// TestTheNewestMinuteIsNotZero: while no relay has written it, nobody knows what it had.
func TestTheNewestMinuteIsNotZero(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		before := e.thisMinute()
		e.minute(before.Add(-5*time.Minute), "orders", 1, 0, nil)
		series, err := e.operator.Series(t.Context(), operator.MaxMinutes, "")
		after := e.thisMinute()
		if err != nil || len(series) < 4 {
			t.Fatalf("%+v, %v", series, err)
		}
		if end := series[len(series)-1].At; end.Before(before.Add(-2*time.Minute)) || end.After(after.Add(-2*time.Minute)) {
			t.Errorf("the series ends at %s, and it was between %s and %s", end, before, after)
		}
	})
}
