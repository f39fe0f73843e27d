package events_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/examples/marketplace/events"
)

// OP-7: the event types and aggregate types are those of the source document's lists, and no others.
func TestTheTypesAreThoseThatWereAsked(t *testing.T) {
	t.Parallel()
	const aggregates = `vendor_order checkout_group license store media ledger_event notification ad`
	const types = `order_created order_state_changed line_item_state_changed license_status_changed media_uploaded
		payment_settled cash_collected vendor_payout_recorded notification_requested
		order_expired order_canceled reservation_released
		ad_created ad_updated ad_paused ad_activated ad_expired ad_daily_rollup_ready`
	registry, err := events.Registry(events.Topics{})
	if err != nil {
		t.Fatal(err)
	}
	for asked, has := range map[string][]string{aggregates: events.AggregateTypes, types: registry.Types()} {
		if want := slices.Sorted(strings.FieldsSeq(asked)); !slices.Equal(slices.Sorted(slices.Values(has)), want) {
			t.Errorf("the marketplace has %q, asked were %q", has, want)
		}
	}
}

// IN-5: the payload of a licence's change has exactly the names that the compliance consumer is promised, and the
// reason only where there is one.
func TestALicenceChangeHasTheNamesThatWereAsked(t *testing.T) {
	t.Parallel()
	for want, payload := range map[string]events.LicenseStatusChangedV1{
		`{"licenseId":"l","storeId":"s","status":"pending"}`:  {LicenseID: "l", StoreID: "s", Status: events.LicensePending},
		`{"licenseId":"l","storeId":"s","status":"verified"}`: {LicenseID: "l", StoreID: "s", Status: events.LicenseVerified},
		`{"licenseId":"l","storeId":"s","status":"rejected","reason":"a reason"}`: {
			LicenseID: "l", StoreID: "s", Status: events.LicenseRejected, Reason: "a reason",
		},
	} {
		if err := payload.Validate(); err != nil {
			t.Errorf("%s: %v", want, err)
		}
		if got, err := json.Marshal(payload); err != nil || string(got) != want {
			t.Errorf("got %s, want %s (%v)", got, want, err)
		}
	}
	if contract := events.LicenseStatusChanged.Contract(); contract.Type != "license_status_changed" ||
		contract.Aggregate != "license" {
		t.Errorf("the contract is of %s about %s", contract.Type, contract.Aggregate)
	}
}
