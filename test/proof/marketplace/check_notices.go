package marketplace

import (
	"fmt"

	"github.com/posthaste-dev/posthaste/outbox"
)

// licenseChanged is the type of events that the compliance consumer makes notices of.
const licenseChanged = "license_status_changed"

// Notices is what came of the changes of licences.
type Notices struct {
	// Changes is how many there were; Missing of them have no notice, and Surplus counts the notices beyond the first.
	Changes, Missing, Surplus int
	// Between counts the kills of workers that fell between a notice and its mark; Unexplained the surplus that none of
	// them explains.
	Between, Unexplained int
	// Wrong are notices that say something else than their event, or have none: a sentence each.
	Wrong []string
}

// An Interruption is an event that was held in Redis when a worker had just been killed.
type Interruption struct {
	Event outbox.ID
	// Token is that of the hold.
	Token string
	// Notices is how many of the event this worker and those killed before it have written. Nothing of theirs is on its
	// way any more.
	Notices int
}

// CheckNotices compares the notices with the changes of licences. Finished has, for each event, the token of the hold
// under which it was handled: a hold of the same token was not the dead worker's, but of the other, which finished.
// With the Postgres inbox there are neither, and nothing explains a surplus.
func CheckNotices(f *Facts, interruptions []Interruption, finished map[outbox.ID]string) Notices {
	var n Notices
	changes, notices := map[outbox.ID]noticeRow{}, map[outbox.ID]int{}
	for _, e := range f.Emitted {
		if e.Type == licenseChanged {
			changes[e.ID] = noticeOf(e)
		}
	}
	for _, r := range f.Notices {
		notices[r.Event]++
		if should := changes[r.Event]; r != should {
			n.Wrong = append(n.Wrong, fmt.Sprintf("a notice is %+v, and should be %+v", r, should))
		}
	}
	between := map[outbox.ID]int{}
	for _, i := range interruptions {
		if i.Token != finished[i.Event] && i.Notices > between[i.Event] {
			between[i.Event]++
			n.Between++
		}
	}
	n.Changes = len(changes)
	for id := range changes {
		surplus := notices[id] - 1
		if surplus < 0 {
			n.Missing++
			continue
		}
		n.Surplus += surplus
		n.Unexplained += max(0, surplus-between[id])
	}
	return n
}

// noticeOf is the notice that a change of a licence leads to: an admin looks at what is new, and the store is told what
// he found.
func noticeOf(e emitted) noticeRow {
	d := dataOf(e)
	r := noticeRow{
		Event: e.ID, Type: "compliance", Audience: "store", Status: d.Status, Reason: d.Reason,
		Link: "/licenses/" + d.LicenseID,
	}
	if d.Status == "pending" {
		r.Audience = "admin"
	}
	r.Store, _ = outbox.ParseID(d.StoreID) // the zero id is nobody's
	r.License, _ = outbox.ParseID(d.LicenseID)
	return r
}
