package marketplace

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/examples/marketplace/events"
	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
)

// honest is a small market day on which everything went well: an order that was canceled, a licence that was rejected,
// money, media, and an ad.
type honest struct {
	Facts
	order, line, license, ad, payment outbox.ID
}

func newHonest() *honest {
	h := &honest{
		order: outbox.NewID(), line: outbox.NewID(), license: outbox.NewID(), ad: outbox.NewID(), payment: outbox.NewID(),
	}
	store, media := outbox.NewID(), outbox.NewID()
	h.emit("order_created", "vendor_order/"+h.order.String(), `{"lines":[{}]}`)
	h.emit("notification_requested", "notification/n", fmt.Sprintf(`{"values":{"orderId":"%s"}}`, h.order))
	h.emit("order_state_changed", "vendor_order/"+h.order.String(), `{"to":"accepted","revision":2}`)
	h.emit("line_item_state_changed", "vendor_order/"+h.order.String(), fmt.Sprintf(`{"lineItemId":"%s"}`, h.line))
	h.emit("order_canceled", "vendor_order/"+h.order.String(), `{"revision":3}`)
	h.emit("reservation_released", "vendor_order/"+h.order.String(), `{}`)
	h.emit("payment_settled", "ledger_event/"+h.payment.String(), `{}`)
	h.emit(licenseChanged, "license/"+h.license.String(),
		fmt.Sprintf(`{"status":"pending","storeId":"%s","licenseId":"%s"}`, store, h.license))
	h.emit(licenseChanged, "license/"+h.license.String(),
		fmt.Sprintf(`{"status":"rejected","reason":"blurred","storeId":"%s","licenseId":"%s"}`, store, h.license))
	h.emit("media_uploaded", "media/"+media.String(), `{}`)
	h.emit("ad_created", "ad/"+h.ad.String(), `{}`)
	h.emit("ad_paused", "ad/"+h.ad.String(), `{}`)
	h.emit("ad_daily_rollup_ready", "ad/"+h.ad.String(), `{"day":"2026-01-31"}`)

	h.Orders = []orderRow{
		{
			ID: h.order, Buyer: &store, Vendor: &store, Currency: new("EUR"), TotalCents: new(int64(500)),
			State: new("canceled"), Revision: new(int64(3)),
		},
	}
	h.Model = slices.Clone(h.Orders)
	h.Lines = []lineRow{{ID: h.line, Order: h.order, State: "released"}}
	h.Ledger = []ledgerRow{{ID: h.payment, Kind: "payment"}}
	h.Licenses = []licenseRow{{ID: h.license, Status: "rejected", Reason: "blurred"}}
	h.Media = []outbox.ID{media}
	h.Ads = []adRow{{ID: h.ad, State: "paused"}}
	h.Rollups = []rollupRow{{Ad: h.ad, Day: "2026-01-31"}}
	for _, e := range h.Emitted {
		if e.Type == licenseChanged {
			h.Notices = append(h.Notices, noticeOf(e))
		}
	}
	return h
}

func (f *Facts) emit(eventType, aggregate, data string) outbox.ID {
	id := outbox.NewID()
	f.Emitted = append(f.Emitted, emitted{
		ID: id, Seq: int64(len(f.Emitted) + 1), Type: eventType, Aggregate: aggregate,
		Payload: fmt.Sprintf(`{"eventId":"%s","data":%s}`, id, data),
	})
	return id
}

// forget takes back the last event of a type, as if it had never been emitted.
func (f *Facts) forget(eventType string) {
	for i, e := range slices.Backward(f.Emitted) {
		if e.Type == eventType {
			f.Emitted = slices.Delete(f.Emitted, i, i+1)
			return
		}
	}
}

func TestTablesAndEventsThatAreNotOne(t *testing.T) {
	t.Parallel()
	if found := CheckTables(&newHonest().Facts); len(found) > 0 {
		t.Fatalf("of honest tables the checker says %q", found)
	}
	for name, test := range map[string]struct {
		doctor func(*honest)
		want   string
	}{
		"an order without its event": {func(h *honest) { h.forget("order_created") }, "0 events of its creation"},
		"an order without any event": {func(h *honest) {
			h.Orders = append(h.Orders, orderRow{ID: outbox.NewID()})
		}, "no event of it"},
		"an event without its order": {func(h *honest) { h.Orders = nil }, "has events, and is not there"},
		"an order that was created twice": {func(h *honest) {
			h.emit("order_created", "vendor_order/"+h.order.String(), `{"lines":[{}]}`)
		}, "2 events of its creation"},
		"a change without its event": {func(h *honest) { h.Orders[0].Revision = new(int64(4)) }, "its events say"},
		"a change without its row": {func(h *honest) {
			h.Orders[0].State, h.Orders[0].Revision = new("accepted"), new(int64(2))
		}, "its events say"},
		"a vendor who is not told": {func(h *honest) { h.forget("notification_requested") }, "told 0 times"},
		"a vendor who is told of nothing": {func(h *honest) {
			h.emit("notification_requested", "notification/m", `{"values":{"orderId":"x"}}`)
		}, "which is not there"},
		"a line that was not released":    {func(h *honest) { h.forget("reservation_released") }, "its events say"},
		"a line that is packed by events": {func(h *honest) { h.Lines[0].State = "reserved" }, "packed is true"},
		"a line that is packed by itself": {func(h *honest) {
			h.Lines[0].State = "packed"
			h.forget("line_item_state_changed")
		}, "packed is false"},
		"a line that is not there":     {func(h *honest) { h.Lines = nil }, "the line"},
		"a payment without its event":  {func(h *honest) { h.forget("payment_settled") }, "the ledger's entry"},
		"a payment that is a payout":   {func(h *honest) { h.Ledger[0].Kind = "payout" }, "the ledger's entry"},
		"an event without its payment": {func(h *honest) { h.Ledger = nil }, "1 entries of the ledger"},
		"a licence without its event":  {func(h *honest) { h.forget(licenseChanged) }, "its events say"},
		"a licence in an older state": {func(h *honest) {
			h.Licenses[0] = licenseRow{ID: h.license, Status: "pending"}
		}, "its events say"},
		"an event without its licence": {func(h *honest) { h.Licenses = nil }, "the licence"},
		"media without their event":    {func(h *honest) { h.forget("media_uploaded") }, "0 events"},
		"an event without its media":   {func(h *honest) { h.Media = nil }, "1 media"},
		"an ad in an older state":      {func(h *honest) { h.Ads[0].State = "active" }, "its events say"},
		"an event without its ad":      {func(h *honest) { h.Ads = nil }, "the ad"},
		"figures without their event":  {func(h *honest) { h.forget("ad_daily_rollup_ready") }, "0 events"},
		"figures that were told twice": {func(h *honest) {
			h.emit("ad_daily_rollup_ready", "ad/"+h.ad.String(), `{"day":"2026-01-31"}`)
		}, "2 events"},
		"an event without its figures": {func(h *honest) { h.Rollups = nil }, "the figures of 1 days"},
	} {
		h := newHonest()
		test.doctor(h)
		if found := CheckTables(&h.Facts); !strings.Contains(strings.Join(found, "\n"), test.want) {
			t.Errorf("%s: the checker says %q, want %q", name, found, test.want)
		}
	}
}

func TestAnAnswerThatWasNotKept(t *testing.T) {
	t.Parallel()
	h := newHonest()
	if broken := CheckAnswers(&h.Facts, []outbox.ID{h.Emitted[0].ID}); len(broken) > 0 {
		t.Errorf("of a kept promise the checker says %q", broken)
	}
	if broken := CheckAnswers(&h.Facts, []outbox.ID{outbox.NewID()}); len(broken) != 1 {
		t.Errorf("of a promise that was not kept the checker says %q", broken)
	}
}

func TestAReadModelThatDiffers(t *testing.T) {
	t.Parallel()
	if differs := CheckModel(&newHonest().Facts); len(differs) > 0 {
		t.Fatalf("of an honest model the checker says %q", differs)
	}
	for name, doctor := range map[string]func(*honest){
		"a row is missing":  func(h *honest) { h.Model = nil },
		"a row is too much": func(h *honest) { h.Model = append(h.Model, orderRow{ID: outbox.NewID()}) },
		"an older state":    func(h *honest) { h.Model[0].State = new("accepted") },
		"an older revision": func(h *honest) { h.Model[0].Revision = new(int64(2)) },
		"no buyer":          func(h *honest) { h.Model[0].Buyer = nil },
		"another vendor":    func(h *honest) { h.Model[0].Vendor = new(outbox.NewID()) },
		"another total":     func(h *honest) { h.Model[0].TotalCents = new(int64(1)) },
		"another currency":  func(h *honest) { h.Model[0].Currency = new("USD") },
	} {
		h := newHonest()
		doctor(h)
		if differs := CheckModel(&h.Facts); len(differs) != 1 {
			t.Errorf("%s: the checker says %q", name, differs)
		}
	}
}

func TestNoticesThatAreTooFewTooManyOrWrong(t *testing.T) {
	t.Parallel()
	h := newHonest()
	if n := CheckNotices(&h.Facts, nil, nil); n.Changes != 2 || n.Missing+n.Surplus+n.Between+n.Unexplained+len(n.Wrong) >
		0 {
		t.Fatalf("of honest notices the checker says %+v", n)
	}
	event := h.Notices[0].Event
	twice := append(slices.Clone(h.Notices), h.Notices[0])
	thrice := append(slices.Clone(twice), h.Notices[0])
	held := func(token string, notices int) Interruption {
		return Interruption{Event: event, Token: token, Notices: notices}
	}
	for name, test := range map[string]struct {
		notices       []noticeRow
		interruptions []Interruption
		finished      string
		want          Notices
	}{
		"none":         {nil, nil, "", Notices{Changes: 2, Missing: 2}},
		"one too many": {twice, nil, "b", Notices{Changes: 2, Surplus: 1, Unexplained: 1}},
		"killed between notice and mark": {
			twice, []Interruption{held("a", 1)}, "b", Notices{Changes: 2, Surplus: 1, Between: 1},
		},
		"killed twice between notice and mark": {
			thrice, []Interruption{held("a", 1), held("b", 2)}, "c", Notices{Changes: 2, Surplus: 2, Between: 2},
		},
		"killed once for two": {
			thrice, []Interruption{held("a", 1)}, "b", Notices{Changes: 2, Surplus: 2, Between: 1, Unexplained: 1},
		},
		"killed before the notice": {
			twice, []Interruption{held("a", 0)}, "b", Notices{Changes: 2, Surplus: 1, Unexplained: 1},
		},
		"killed before the second notice": {
			twice, []Interruption{held("a", 1), held("b", 1)}, "c", Notices{Changes: 2, Surplus: 1, Between: 1},
		},
		"another was killed, and this one went on": {
			twice, []Interruption{held("a", 1)}, "a", Notices{Changes: 2, Surplus: 1, Unexplained: 1},
		},
		"killed, and never delivered again": {h.Notices, []Interruption{held("a", 1)}, "", Notices{Changes: 2, Between: 1}},
		"killed with another event": {
			twice,
			[]Interruption{{Event: h.Notices[1].Event, Token: "a", Notices: 1}},
			"b",
			Notices{Changes: 2, Surplus: 1, Between: 1, Unexplained: 1},
		},
	} {
		facts := h.Facts
		facts.Notices = test.notices
		if n := CheckNotices(&facts, test.interruptions, map[outbox.ID]string{event: test.finished}); fmt.Sprint(n) !=
			fmt.Sprint(test.want) {
			t.Errorf("%s: the checker says %+v, want %+v", name, n, test.want)
		}
	}
	for name, doctor := range map[string]func(*noticeRow){
		"for another store":   func(n *noticeRow) { n.Store = outbox.NewID() },
		"of another licence":  func(n *noticeRow) { n.License = outbox.NewID() },
		"to somebody else":    func(n *noticeRow) { n.Audience = "store" },
		"with another status": func(n *noticeRow) { n.Status = "verified" },
		"with another reason": func(n *noticeRow) { n.Reason = "none" },
		"with another link":   func(n *noticeRow) { n.Link = "/" },
		"of no event":         func(n *noticeRow) { n.Event = outbox.NewID() },
	} {
		facts := h.Facts
		facts.Notices = slices.Clone(h.Notices)
		doctor(&facts.Notices[0])
		if n := CheckNotices(&facts, nil, nil); len(n.Wrong) != 1 {
			t.Errorf("a notice %s: the checker says %q", name, n.Wrong)
		}
	}
}

// TestTheRelaysChecker: what the broker got is held against what the triggers saw, and not against what the outbox
// says.
func TestTheRelaysChecker(t *testing.T) {
	t.Parallel()
	registry, err := events.Registry(events.Topics{})
	if err != nil {
		t.Fatal(err)
	}
	h := newHonest()
	checked := func(doctor func(deliveries []check.Delivery) []check.Delivery) *check.Verdict {
		history, err := transactions(h.Emitted, registry)
		if err != nil {
			t.Fatal(err)
		}
		var deliveries []check.Delivery
		for i, r := range history {
			e := r.Tx.Events[0]
			deliveries = append(deliveries, check.Delivery{
				Index: uint64(i + 1), ID: e.ID, Type: e.Type, Topic: e.Topic, Key: e.Key, Payload: e.Payload, Headers: e.Headers,
			})
			history = append(history,
				check.Record{
					Row: &check.Row{ID: e.ID, Seq: int64(e.Version), Type: e.Type, State: check.Published, Published: true},
				})
		}
		for _, d := range doctor(deliveries) {
			history = append(history, check.Record{Delivery: &d})
		}
		return append(history, check.Record{End: &check.End{Drained: true, Dumped: true}}).Check(check.Floor{})
	}
	if v := checked(func(d []check.Delivery) []check.Delivery { return d }); !v.Pass() {
		t.Fatalf("an honest history does not pass: %v %v", v.Problems(), v.TooLittle)
	}
	for counter, doctor := range map[check.Counter]func([]check.Delivery) []check.Delivery{
		check.Lost:      func(d []check.Delivery) []check.Delivery { return d[1:] },
		check.Corrupted: func(d []check.Delivery) []check.Delivery { d[3].Payload = check.SumOf([]byte("x")); return d },
		check.OrderViolations: func(d []check.Delivery) []check.Delivery {
			d[2].Index, d[4].Index = d[4].Index, d[2].Index
			return d
		},
		check.Phantom: func(d []check.Delivery) []check.Delivery { d[0].ID = outbox.NewID(); return d },
		check.DuplicatesUnexplained: func(d []check.Delivery) []check.Delivery {
			again := d[0]
			again.Index = uint64(len(d) + 1)
			return append(d, again)
		},
	} {
		if v := checked(doctor); v.Count(counter) == 0 {
			t.Errorf("%s is not found: %s", counter, v.Line())
		}
	}
}
