package marketplace

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/posthaste-dev/posthaste/outbox"
)

// data is what the checker reads of payloads.
type data struct {
	Day       string            `json:"day"`
	LineItem  string            `json:"lineItemId"`
	Lines     []json.RawMessage `json:"lines"`
	Reason    string            `json:"reason"`
	Revision  int64             `json:"revision"`
	Status    string            `json:"status"`
	StoreID   string            `json:"storeId"`
	LicenseID string            `json:"licenseId"`
	To        string            `json:"to"`
	Values    map[string]string `json:"values"`
}

func dataOf(e emitted) data {
	var envelope struct{ Data data }
	_ = json.Unmarshal([]byte(e.Payload), &envelope) // what cannot be read has nothing in it, and is found for that
	return envelope.Data
}

// expected is what a table must say if exactly the events that were emitted have happened.
type expected struct {
	orders   map[string]*thing // by order
	packed   map[string]bool   // by line
	asked    map[string]int    // messages to vendors, by order
	ledger   map[string]string
	licenses map[string]*thing
	media    map[string]int
	ads      map[string]*thing
	rollups  map[string]int
}

// thing is what became of one thing by its events.
type thing struct {
	created         int
	state, reason   string
	revision, lines int64
	released        int
}

// expect replays the events in their order.
func expect(events []emitted) *expected {
	x := &expected{
		orders: map[string]*thing{}, packed: map[string]bool{}, asked: map[string]int{}, ledger: map[string]string{},
		licenses: map[string]*thing{},
		media:    map[string]int{}, ads: map[string]*thing{}, rollups: map[string]int{},
	}
	for _, e := range events {
		_, id, _ := strings.Cut(e.Aggregate, "/")
		x.replay(e.Type, id, dataOf(e))
	}
	return x
}

func (x *expected) replay(eventType, id string, d data) {
	switch eventType {
	case "order_created":
		of(x.orders, id).begin("pending", int64(len(d.Lines)))
	case "order_state_changed":
		of(x.orders, id).move(d.To, "")
	case "order_canceled":
		of(x.orders, id).move("canceled", "")
	case "order_expired":
		of(x.orders, id).move("expired", "")
	case "line_item_state_changed":
		x.packed[d.LineItem] = true
	case "reservation_released":
		of(x.orders, id).released++
	case "notification_requested":
		x.asked[d.Values["orderId"]]++
	case "payment_settled", "cash_collected":
		x.ledger[id] += "payment"
	case "vendor_payout_recorded":
		x.ledger[id] += "payout"
	case "license_status_changed":
		x.license(id, d)
	case "media_uploaded":
		x.media[id]++
	case "ad_created":
		of(x.ads, id).begin("active", 0)
	case "ad_updated":
		of(x.ads, id)
	case "ad_paused":
		of(x.ads, id).move("paused", "")
	case "ad_activated":
		of(x.ads, id).move("active", "")
	case "ad_expired":
		of(x.ads, id).move("expired", "")
	case "ad_daily_rollup_ready":
		x.rollups[id+"/"+d.Day]++
	}
}

// license: the first change of a licence is its creation.
func (x *expected) license(id string, d data) {
	if x.licenses[id] == nil {
		of(x.licenses, id).begin("pending", 0)
	}
	of(x.licenses, id).move(d.Status, d.Reason)
}

func of(things map[string]*thing, id string) *thing {
	if things[id] == nil {
		things[id] = &thing{}
	}
	return things[id]
}

func (l *thing) begin(state string, lines int64) {
	l.created++
	l.state, l.revision, l.lines = state, 1, lines
}

func (l *thing) move(state, reason string) {
	l.state, l.reason = state, reason
	l.revision++
}

// CheckTables compares what is in the API's tables with what was emitted, in both directions: a row without its event,
// an event without its row, and a state that the events do not lead to. It returns a sentence for each.
func CheckTables(f *Facts) []string {
	j := &comparison{}
	x := expect(f.Emitted)
	j.orders(f, x)
	j.entries(f, x)
	for _, r := range f.Licenses {
		j.compareThing(x.licenses, "licence", r.ID, r.Status+" "+r.Reason, func(l *thing) string {
			return l.state + " " + l.reason
		})
	}
	j.rest("licence", x.licenses)
	for _, r := range f.Ads {
		j.compareThing(x.ads, "ad", r.ID, r.State, func(l *thing) string { return l.state })
	}
	j.rest("ad", x.ads)
	return j.found
}

// comparison takes what has its counterpart out of what is expected; what is left has none.
type comparison struct{ found []string }

func (j *comparison) isf(broken bool, format string, args ...any) {
	if broken {
		j.found = append(j.found, fmt.Sprintf(format, args...))
	}
}

// compareThing compares a row with what its events say, and forgets them.
func (j *comparison) compareThing(things map[string]*thing, what string, id outbox.ID, is string,
	should func(*thing) string,
) {
	l := things[id.String()]
	delete(things, id.String())
	if l == nil {
		j.isf(true, "the %s %s is there, and no event of it", what, id)
		return
	}
	j.isf(l.created != 1, "the %s %s has %d events of its creation", what, id, l.created)
	j.isf(is != should(l), "the %s %s is %q, and its events say %q", what, id, is, should(l))
}

func (j *comparison) rest(what string, things map[string]*thing) {
	for id := range things {
		j.isf(true, "the %s %s has events, and is not there", what, id)
	}
}

// orders compares orders and their lines.
func (j *comparison) orders(f *Facts, x *expected) {
	lines, released := map[outbox.ID]int64{}, map[outbox.ID]int{}
	for _, r := range f.Lines {
		lines[r.Order]++
		packed := x.packed[r.ID.String()]
		delete(x.packed, r.ID.String())
		switch r.State {
		case "released":
			released[r.Order]++
		default:
			j.isf(packed != (r.State == "packed"), "the line %s is %s, and by its events packed is %t", r.ID, r.State, packed)
		}
	}
	for line := range x.packed {
		j.isf(true, "the line %s has events, and is not there", line)
	}
	for _, r := range f.Orders {
		asked := x.asked[r.ID.String()]
		delete(x.asked, r.ID.String())
		j.isf(asked != 1, "the vendor of order %s is to be told %d times", r.ID, asked)
		is := fmt.Sprintf("%s, revision %d, %d lines, %d released", text(r.State), number(r.Revision), lines[r.ID],
			released[r.ID])
		j.compareThing(x.orders, "order", r.ID, is, func(l *thing) string {
			return fmt.Sprintf("%s, revision %d, %d lines, %d released", l.state, l.revision, l.lines, l.released)
		})
	}
	j.rest("order", x.orders)
	for order := range x.asked {
		j.isf(true, "a vendor is to be told of order %s, which is not there", order)
	}
}

// entries compares what has one row per event and never changes.
func (j *comparison) entries(f *Facts, x *expected) {
	for _, r := range f.Ledger {
		j.isf(x.ledger[r.ID.String()] != r.Kind, "the ledger's entry %s is a %s, and its events say %q", r.ID, r.Kind,
			x.ledger[r.ID.String()])
		delete(x.ledger, r.ID.String())
	}
	for _, id := range f.Media {
		j.isf(x.media[id.String()] != 1, "the media %s has %d events", id, x.media[id.String()])
		delete(x.media, id.String())
	}
	for _, r := range f.Rollups {
		key := r.Ad.String() + "/" + r.Day
		j.isf(x.rollups[key] != 1, "the figures %s have %d events", key, x.rollups[key])
		delete(x.rollups, key)
	}
	j.isf(len(x.ledger) > 0, "%d entries of the ledger have events, and are not there", len(x.ledger))
	j.isf(len(x.media) > 0, "%d media have events, and are not there", len(x.media))
	j.isf(len(x.rollups) > 0, "the figures of %d days have events, and are not there", len(x.rollups))
}

// CheckAnswers counts the events that an answer promised and that were not emitted.
func CheckAnswers(f *Facts, promised []outbox.ID) (broken []string) {
	there := map[outbox.ID]bool{}
	for _, e := range f.Emitted {
		there[e.ID] = true
	}
	for _, id := range promised {
		if !there[id] {
			broken = append(broken, fmt.Sprintf("a request was answered with the event %s, which was never committed", id))
		}
	}
	return broken
}

// CheckModel compares the read model with the orders, row by row. It returns a sentence for each that differs.
func CheckModel(f *Facts) (differs []string) {
	orders := map[outbox.ID]string{}
	for _, r := range f.Orders {
		orders[r.ID] = r.String()
	}
	for _, r := range f.Model {
		if is, should := r.String(), orders[r.ID]; is != should {
			differs = append(differs, fmt.Sprintf("the read model says %q of order %s, which is %q", is, r.ID, should))
		}
		delete(orders, r.ID)
	}
	for id := range orders {
		differs = append(differs, fmt.Sprintf("the read model does not know order %s", id))
	}
	return differs
}

func (r orderRow) String() string {
	id := func(id *outbox.ID) string {
		if id == nil {
			return "nobody"
		}
		return id.String()
	}
	return fmt.Sprintf("from %s to %s, %d %s, %s, revision %d", id(r.Vendor), id(r.Buyer), number(r.TotalCents),
		text(r.Currency), text(r.State), number(r.Revision))
}

func text(s *string) string {
	if s == nil {
		return "nothing"
	}
	return *s
}

func number(n *int64) int64 {
	if n == nil {
		return -1
	}
	return *n
}
