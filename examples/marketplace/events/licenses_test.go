package events_test

import (
	"encoding/json"
	"testing"

	"github.com/posthaste-dev/posthaste/examples/marketplace/events"
)

// IN-5: the payload of a licence's change has exactly the names that the compliance consumer is promised, and the reason
// only where there is one.
func TestALicenceChangeHasTheNamesThatWereAsked(t *testing.T) {
	t.Parallel()
	for want, payload := range map[string]events.LicenseStatusChangedV1{
		`{"licenseId":"l","storeId":"s","status":"pending"}`:                      {LicenseID: "l", StoreID: "s", Status: events.LicensePending},
		`{"licenseId":"l","storeId":"s","status":"verified"}`:                     {LicenseID: "l", StoreID: "s", Status: events.LicenseVerified},
		`{"licenseId":"l","storeId":"s","status":"rejected","reason":"a reason"}`: {LicenseID: "l", StoreID: "s", Status: events.LicenseRejected, Reason: "a reason"},
	} {
		if err := payload.Validate(); err != nil {
			t.Errorf("%s: %v", want, err)
		}
		if got, err := json.Marshal(payload); err != nil || string(got) != want {
			t.Errorf("got %s, want %s (%v)", got, want, err)
		}
	}
	if contract := events.LicenseStatusChanged.Contract(); contract.Type != "license_status_changed" || contract.Aggregate != "license" {
		t.Errorf("the contract is of %s about %s", contract.Type, contract.Aggregate)
	}
}
