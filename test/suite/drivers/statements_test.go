package drivers_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// TestOneStatement counts what an emit sends: one statement, whatever the driver and however many
// events, and nothing where the event is refused. How many round trips that is, is the driver's affair;
// docs/guide/drivers.md lists these numbers.
func TestOneStatement(t *testing.T) {
	t.Parallel()
	for _, driver := range drivers() {
		t.Run(driver.name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t, pgtest.Servers()[0])
			wire := newWire(t, db.URL)
			c := cell{db: db, open: driver.open(t, wire.url, db.Schema), contract: contractOf("counted")}
			plain, keyed := c.event("1", `{}`), c.event("1", `{}`)
			keyed.DedupeKey = "key"
			for _, call := range []struct {
				name   string
				events []outbox.Event
			}{
				{"one", []outbox.Event{plain}},
				{"many", slices.Repeat([]outbox.Event{plain}, 100)},
				{"one deduped", []outbox.Event{keyed}},
				{"many deduped", append(slices.Repeat([]outbox.Event{plain}, 100), keyed)},
			} {
				for emit, trips := range driver.trips {
					in := c.begin(t)
					before := wire.count()
					c.emit(t, in, call.events...)
					got := wire.count().minus(before)
					if got.statements != 1 || got.roundTrips != trips {
						t.Errorf("%s, emit %d: %d statements in %d round trips, want 1 in %d", call.name, emit+1, got.statements,
							got.roundTrips, trips)
					}
					c.commit(t, in)
				}
			}
			wantNothingSent(t, c, wire)
		})
	}
}

// wantNothingSent: what can be refused is refused before the driver is asked.
func wantNothingSent(t *testing.T, c cell, wire *wire) {
	t.Helper()
	in := c.begin(t)
	before := wire.count()
	if _, err := in.emit(t.Context(), c.event("", `{}`)); !errors.Is(err, outbox.ErrRefused) {
		t.Errorf("got %v, want a refusal", err)
	}
	if got := wire.count().minus(before); got.messages != 0 {
		t.Errorf("a refusal sent %d messages, want none", got.messages)
	}
}
