package emit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/posthaste-dev/posthaste/daemon/registryfile"
	"github.com/posthaste-dev/posthaste/examples/marketplace/events"
	"github.com/posthaste-dev/posthaste/outbox"
)

// sameTopics lists the types that two registries do not treat alike.
func sameTopics(one, other *outbox.Registry) []string {
	var different []string
	if !reflect.DeepEqual(one.Types(), other.Types()) {
		different = append(different, fmt.Sprintf("types: %v and %v", one.Types(), other.Types()))
	}
	for _, eventType := range one.Types() {
		a, _ := one.Contract(eventType)
		b, _ := other.Contract(eventType)
		a.Validate, b.Validate = nil, nil
		if !reflect.DeepEqual(a, b) {
			different = append(different, fmt.Sprintf("%s: %+v and %+v", eventType, a, b))
		}
	}
	return different
}

func marketplace(t *testing.T) (compiled, fromFile *outbox.Registry) {
	t.Helper()
	compiled, err := events.Registry(events.Topics{})
	if err != nil {
		t.Fatal(err)
	}
	file, err := registryfile.Load("../../../examples/registry.yaml", registryfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return compiled, file.Registry
}

// RG-1: the registry in Go and the one in a file are the same registry.
func TestTheFileHasTheTopicsOfTheCode(t *testing.T) {
	t.Parallel()
	compiled, fromFile := marketplace(t)
	for _, difference := range sameTopics(compiled, fromFile) {
		t.Error(difference)
	}
	exported, err := registryfile.Export(compiled)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "registry.yaml")
	if err := os.WriteFile(name, exported, 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := registryfile.Load(name, registryfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, difference := range sameTopics(compiled, again.Registry) {
		t.Errorf("exported: %s", difference)
	}
}

// Both check the same payloads alike, good ones and bad ones.
func TestTheFileChecksAsTheCode(t *testing.T) {
	t.Parallel()
	compiled, fromFile := marketplace(t)
	good, bad := 0, 0
	for _, eventType := range compiled.Types() {
		contract, _ := compiled.Contract(eventType)
		for _, data := range []string{
			`{}`, `{"orderId":"o","vendorStoreId":"s","lines":[{"quantity":1}],"newer":1}`,
			`{"orderId":"o","vendorStoreId":"s","lines":[]}`,
			`{"orderId":"o","vendorStoreId":"","lines":[{}]}`,
			`{"orderId":"o","vendorStoreId":"s","lines":[{"quantity":"many"}]}`, `{"orderId":7}`,
			`{"licenseId":"l","storeId":"s","status":"verified"}`, `{"licenseId":"l","storeId":"s","status":"lost"}`,
			`{"licenseId":"l","status":"verified"}`,
			`{"adId":"a","dailyBudgetCents":5}`, `{"dailyBudgetCents":0.5}`, `{"dailyBudgetCents":"5"}`, `{"amountCents":-5}`,
			`{"amountCents":[]}`, `{"values":{"a":"b"}}`,
			`{"values":{"a":1}}`, `{"values":[]}`, `{"bytes":1}`, `{"bytes":true}`, `{"revision":"1"}`, `{"day":20260101}`,
			`{"from":1}`, `{"to":{}}`, `{"reason":5}`, `{"quantity":1.5}`, `[]`, `null`, `"x"`,
		} {
			id := outbox.NewID()
			stored := outbox.Stored{
				ID: id, EventType: eventType, AggregateType: contract.Aggregate, AggregateID: "1",
				Payload: []byte(fmt.Sprintf(`{"version":1,"eventId":%q,"occurredAt":"2026-01-02T03:04:05Z","data":%s}`, id, data)),
			}
			_, one := compiled.Check(stored)
			_, other := fromFile.Check(stored)
			if (one == nil) != (other == nil) {
				t.Errorf("%s %s: the code says %v, the file %v", eventType, data, one, other)
			}
			if one == nil {
				good++
			} else {
				bad++
			}
		}
	}
	if good < 100 || bad < 50 {
		t.Errorf("%d good and %d bad payloads are too few", good, bad)
	}
}
