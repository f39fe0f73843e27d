package consumer_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/outbox"
)

type licenseStatus struct {
	LicenseID string `json:"licenseId"`
	Status    string `json:"status"`
}

var licenseStatusChanged = outbox.Define[licenseStatus](outbox.Contract{
	Type: "license_status_changed", Aggregate: "license", Topic: "pf-domain-events",
})

func Example() {
	handle := func(_ context.Context, event *consumer.Event, license licenseStatus) error {
		if license.Status == "" {
			return consumer.Poison(fmt.Errorf("the event %s has no status", event.ID)) // trying again does not help
		}
		fmt.Printf("%s is %s\n", license.LicenseID, license.Status)
		return nil
	}
	compliance, err := consumer.New(consumer.Config{Name: "compliance", Logger: slog.New(slog.DiscardHandler)},
		consumer.On(licenseStatusChanged, handle))
	if err != nil {
		fmt.Println(err)
		return
	}
	// A loop does this, with what it receives, and does what the verdict says.
	verdict := compliance.Process(context.Background(), map[string]string{
		"event_id": "0198c0de-0000-7000-8000-000000000001", "event_type": "license_status_changed",
	}, []byte(`{"version":1,"eventId":"0198c0de-0000-7000-8000-000000000001","occurredAt":"2026-01-02T03:04:05Z",`+
		`"data":{"licenseId":"L-7","status":"verified"}}`), 1)
	fmt.Println(verdict.Outcome, verdict.Acknowledge())
	// Output:
	// L-7 is verified
	// handled true
}
