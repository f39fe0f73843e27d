package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
)

// TestRelaysScreen: who is there, who holds which lane, and what is wrong with each lane.
func TestRelaysScreen(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.shows(viewer, "relays", "No relay is alive")
		alive := e.joins("relay-a <b>", "1 hour", 1, 61)
		e.joins("relay-b", "-1 minute", 62, 63)
		gone := e.joins("relay-c", "1 hour", 64, 64)
		e.exec("UPDATE {schema}.outbox_lanes SET owner = NULL, token = NULL WHERE lane = 64")
		e.exec("UPDATE {schema}.outbox_relays SET ended_at = clock_timestamp(), lanes = '{}' WHERE id = $1::text::uuid", gone)
		e.fails(alive, "orders", "it is gone")
		marked := outbox.NewID().String()
		e.exec("UPDATE {schema}.outbox_lanes SET crash_count = 2 WHERE lane = 3")
		e.exec("INSERT INTO {schema}.outbox_markers (layout, lane, event_id, deaths) VALUES (1, 3, $1::text::uuid, 1)",
			marked)
		e.exec("UPDATE {schema}.outbox_lanes SET needs = '{order_paid}' WHERE lane = 4")
		body := e.shows(viewer, "relays", "relay-a <b>", "relay-b", "1-61", "3 of 64 lanes are held by nobody who is alive",
			"does not beat any more", marked, "order_paid", "topics?topic=orders", "1 died with it")
		e.hides(body, "relay-c", "<b>")
		for lane := 1; lane <= 64; lane++ {
			want := "good"
			switch {
			case lane > 61:
				want = "bad"
			case lane == 3 || lane == 4:
				want = "warn"
			}
			if !strings.Contains(body, fmt.Sprintf(`<li class="%s"><a href="#lane-%d"`, want, lane)) {
				t.Errorf("lane %d is not %s", lane, want)
			}
		}
		e.shows(viewer, "relays?ended=1", "relay-c", "ended")
		e.isForbidden("relays", tenants)
	})
}

// TestRelaysOfARestoredDatabase: that all relays wait is said to everybody, and only an admin can end it, by the
// entry of its own.
func TestRelaysOfARestoredDatabase(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.isForbidden("restored", viewer, operates, tenants)
		reason := []string{"reason", "the only copy"}
		if status, _, _ := e.posts(operates, "restored", reason...); status != http.StatusForbidden {
			t.Errorf("an operator: status %d", status)
		}
		if status, body, leads := e.posts(admin, "restored", reason...); leads != "relays?did=restored-not-applicable" {
			t.Errorf("status %d to %s: %s", status, leads, body)
		}
		e.exec(`INSERT INTO {schema}.outbox_identity (system_identifier, timeline, since, seen_at)
			VALUES (1, 1, 'epoch', 'epoch')`)
		e.shows(admin, "restored", "restored or copied", "Resume a restored database")
		e.hides(e.shows(operates, "relays", "The relays wait", "An admin can resume"), `"/o/shop/restored"`)
		e.shows(admin, "relays", "The relays wait", `"/o/shop/restored"`)
		status, body, location := e.posts(admin, "restored", reason...)
		if status != http.StatusSeeOther || location != "relays?did=restored-done" {
			t.Fatalf("status %d to %s: %s", status, location, body)
		}
		e.hides(e.shows(admin, "relays?did=restored-done", "The relays publish from this database"),
			"The relays wait")
	})
}
