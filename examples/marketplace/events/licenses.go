package events

import (
	"errors"

	"github.com/posthaste-dev/posthaste/outbox"
)

// LicenseStatusChanged says that a store's licence was uploaded, approved or rejected.
var LicenseStatusChanged = outbox.Define[LicenseStatusChangedV1](outbox.Contract{
	Type: "license_status_changed", Version: 1, Aggregate: License, Topic: domainTopic,
})

// LicenseStatus is where a licence stands.
type LicenseStatus string

// The statuses of a licence.
const (
	LicensePending  LicenseStatus = "pending"
	LicenseVerified LicenseStatus = "verified"
	LicenseRejected LicenseStatus = "rejected"
)

// LicenseStatusChangedV1 is the payload of [LicenseStatusChanged].
type LicenseStatusChangedV1 struct {
	LicenseID string        `json:"licenseId"`
	StoreID   string        `json:"storeId"`
	Status    LicenseStatus `json:"status"`
	Reason    string        `json:"reason,omitempty"`
}

// Validate holds the payload to what the compliance consumer needs.
func (l LicenseStatusChangedV1) Validate() error {
	if l.LicenseID == "" || l.StoreID == "" {
		return errors.New("licenseId and storeId are required")
	}
	switch l.Status {
	case LicensePending, LicenseVerified, LicenseRejected:
		return nil
	default:
		return errors.New("status must be pending, verified or rejected")
	}
}
