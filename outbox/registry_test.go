package outbox

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

type licenseStatus struct {
	Status string `json:"status"`
	Count  int    `json:"count,omitempty"`
}

func (l licenseStatus) Validate() error {
	if l.Status == "" {
		return errors.New("status is required")
	}
	return nil
}

func licenseContract() *ContractFor[licenseStatus] {
	return Define[licenseStatus](Contract{Type: "license_status_changed", Aggregate: "license", Topic: "domain"})
}

func anythingContract(validate func(json.RawMessage) error) *ContractFor[json.RawMessage] {
	return Define[json.RawMessage](Contract{Type: "anything", Aggregate: "thing", Topic: "analytics", Validate: validate})
}

// stored is a row as the relay would read it.
func stored(eventType, aggregateType, aggregateID, data string) Stored {
	envelope := Envelope{Version: 1, EventID: NewID(), OccurredAt: time.Now(), Data: json.RawMessage(data)}
	return Stored{
		ID: envelope.EventID, EventType: eventType, AggregateType: aggregateType, AggregateID: aggregateID,
		Payload: envelope.appendTo(nil),
	}
}

func TestRegistryGivesOneTopicAndOneAggregate(t *testing.T) {
	t.Parallel()
	registry, err := NewRegistry(licenseContract(), anythingContract(nil))
	if err != nil {
		t.Fatal(err)
	}
	contract, known := registry.Contract("license_status_changed")
	if !known || contract.Topic != "domain" || contract.Aggregate != "license" || contract.Version != 1 ||
		contract.Namespace != DefaultNamespace {
		t.Errorf("got %+v, %v", contract, known)
	}
	if _, known := registry.Contract("order_created"); known {
		t.Error("a type that is not in the registry was found")
	}
	if types := registry.Types(); !slices.Equal(types, []string{"anything", "license_status_changed"}) {
		t.Errorf("types are %v", types)
	}
}

func TestRegistryReportsEverythingAtOnce(t *testing.T) {
	t.Parallel()
	_, err := NewRegistry(
		licenseContract(), licenseContract(), nil,
		Define[licenseStatus](Contract{
			Type: "no spaces", Version: -1, MaxBytes: MaxContractBytes + 1, OnDead: OnDeadBlock + 1, MaxAttempts: -1,
		}),
	)
	var invalid *RegistryError
	if !errors.As(err, &invalid) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{
		"defined twice", "contract 2 is nil", "Type: must be", "Aggregate: missing", "Topic: missing", "Version: not",
		"MaxBytes: 9437185", "OnDead: 2", "MaxAttempts: -1",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

func TestRegistryKeepsWhatADeadEventMeans(t *testing.T) {
	t.Parallel()
	registry, err := NewRegistry(
		licenseContract(),
		Define[licenseStatus](Contract{
			Type: "license_viewed", Aggregate: "license", Topic: "analytics", OnDead: OnDeadBlock, MaxAttempts: 3,
		}),
	)
	if err != nil {
		t.Fatal(err)
	}
	if contract, _ := registry.Contract("license_status_changed"); contract.OnDead != OnDeadSkip ||
		contract.MaxAttempts != 0 {
		t.Errorf("the defaults are %+v, want OnDeadSkip and 0", contract)
	}
	if contract, _ := registry.Contract("license_viewed"); contract.OnDead != OnDeadBlock || contract.MaxAttempts != 3 {
		t.Errorf("got %+v, want OnDeadBlock and 3", contract)
	}
}

func TestRegistryMustCoverTheDeclaredTypes(t *testing.T) {
	t.Parallel()
	registry, err := NewRegistry(licenseContract(), anythingContract(nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := registry.Covers("anything", "license_status_changed"); err != nil {
		t.Error(err)
	}
	err = registry.Covers("license_status_changed", "order_created")
	if err == nil || !strings.Contains(err.Error(), `"order_created" is declared and has no contract`) ||
		!strings.Contains(err.Error(), `"anything" has a contract and is not declared`) {
		t.Errorf("got %v", err)
	}
}

func TestRegistryNamesTopicsAsTheDeploymentDoes(t *testing.T) {
	t.Parallel()
	registry, err := NewRegistry(licenseContract(), anythingContract(nil))
	if err != nil {
		t.Fatal(err)
	}
	named, err := registry.WithTopics(map[string]string{"domain": "pf-domain-events"})
	if err != nil {
		t.Fatal(err)
	}
	for eventType, want := range map[string]string{"license_status_changed": "pf-domain-events", "anything": "analytics"} {
		if contract, _ := named.Contract(eventType); contract.Topic != want {
			t.Errorf("%s goes to %s, want %s", eventType, contract.Topic, want)
		}
	}
	if contract, _ := registry.Contract("license_status_changed"); contract.Topic != "domain" {
		t.Error("the registry itself was changed")
	}
	if _, err := registry.WithTopics(map[string]string{"billing": "x", "domain": ""}); err == nil ||
		!strings.Contains(err.Error(), "billing") || !strings.Contains(err.Error(), "renamed to nothing") {
		t.Errorf("got %v", err)
	}
}

func TestCheckHoldsAStoredEventToItsContract(t *testing.T) {
	t.Parallel()
	registry, err := NewRegistry(licenseContract(), anythingContract(func(data json.RawMessage) error {
		if strings.Contains(string(data), "forbidden") {
			return errors.New("rule 7")
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	otherID := stored("anything", "thing", "1", `{}`)
	otherID.ID = NewID()
	noEnvelope := stored("anything", "thing", "1", `{}`)
	noEnvelope.Payload = []byte(`{"a":1}`)
	for _, test := range []struct {
		name   string
		stored Stored
		reason Reason
		detail string
	}{
		{"whole", stored("license_status_changed", "license", "1", `{"status":"pending"}`), "", ""},
		{
			"unknown fields are tolerated", stored("license_status_changed", "license", "1", `{"status":"pending","new":1}`), "",
			"",
		},
		{"empty object", stored("anything", "thing", "1", `{}`), "", ""},
		{"unknown type", stored("order_created", "license", "1", `{}`), UnknownEventType, "no such type"},
		{"other aggregate", stored("anything", "license", "1", `{}`), AggregateMismatch, "aggregate type thing"},
		{"no aggregate type", stored("anything", "", "1", `{}`), AggregateMismatch, "aggregate type thing"},
		{"no aggregate id", stored("anything", "thing", "", `{}`), AggregateMismatch, "id is missing"},
		{"null", stored("anything", "thing", "1", `null`), InvalidPayload, "data is missing or null"},
		{"array", stored("anything", "thing", "1", `[]`), InvalidPayload, "must be a JSON object"},
		{
			"wrong type of a field", stored("license_status_changed", "license", "1", `{"status":7}`), InvalidPayload,
			`field "status" must be a string`,
		},
		{
			"the type's own validation", stored("license_status_changed", "license", "1", `{}`), InvalidPayload,
			"status is required",
		},
		{"the contract's validation", stored("anything", "thing", "1", `{"forbidden":1}`), InvalidPayload, "rule 7"},
		{"another id in the envelope", otherID, InvalidPayload, "is not the event's id"},
		{"no envelope", noEnvelope, InvalidPayload, "version is missing"},
	} {
		_, err := registry.Check(test.stored)
		var broken *ContractError
		switch {
		case test.reason == "":
			if err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
		case !errors.As(err, &broken) || broken.Reason != test.reason || !strings.Contains(broken.Detail, test.detail):
			t.Errorf("%s: got %v, want %s with %q", test.name, err, test.reason, test.detail)
		}
	}
}
