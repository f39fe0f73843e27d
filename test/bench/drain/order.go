package drain

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/posthaste-dev/posthaste/outbox"
)

// order is the data of an event; with its envelope it has about 500 bytes.
type order struct {
	OrderID   outbox.ID `json:"orderId"`
	AccountID string    `json:"accountId"`
	Status    string    `json:"status"`
	Currency  string    `json:"currency"`
	Amount    int64     `json:"amount"`
	Filler    string    `json:"filler"`
}

const (
	aggregates  = 10_000
	aggregate   = "account"
	eventTypes  = 8
	fillerBytes = 200
	// Topic is what the contracts name; a deployment may rename it.
	Topic = "orders"
)

// accountID is the id of an aggregate. Its number is its last eight digits.
func accountID(number int) string { return fmt.Sprintf("account-%08d", number) }

// accountNumber is the number of an aggregate, -1 for an id that is none of ours.
func accountNumber(id string) int {
	if len(id) != len("account-")+8 {
		return -1
	}
	number, err := strconv.Atoi(id[len("account-"):])
	if err != nil || number < 0 || number >= aggregates {
		return -1
	}
	return number
}

func contracts(validate func(json.RawMessage) error) []*outbox.ContractFor[order] {
	all := make([]*outbox.ContractFor[order], eventTypes)
	for i := range all {
		all[i] = outbox.Define[order](outbox.Contract{
			Type: "order_event_" + strconv.Itoa(i), Aggregate: aggregate, Topic: Topic, Validate: validate,
		})
	}
	return all
}

// Registry has the contracts of all events here, with the topic under the name of the deployment; the
// payload is checked by decoding it into its Go type and, where asked for, by a JSON Schema as well.
func Registry(topic string, jsonSchema bool) (*outbox.Registry, error) {
	var validate func(json.RawMessage) error
	if jsonSchema {
		schema, err := orderSchema()
		if err != nil {
			return nil, err
		}
		validate = func(data json.RawMessage) error {
			document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
			if err != nil {
				return fmt.Errorf("decode: %w", err)
			}
			return schema.Validate(document)
		}
	}
	defined := make([]outbox.AnyContract, 0, eventTypes)
	for _, contract := range contracts(validate) {
		defined = append(defined, contract)
	}
	registry, err := outbox.NewRegistry(defined...)
	if err != nil {
		return nil, fmt.Errorf("drain: %w", err)
	}
	return registry.WithTopics(map[string]string{Topic: topic})
}

// orderSchemaText says what the Go type says, and a little more, as a schema would.
const orderSchemaText = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"required": ["orderId", "accountId", "status", "currency", "amount", "filler"],
	"properties": {
		"orderId": {"type": "string", "minLength": 36, "maxLength": 36},
		"accountId": {"type": "string", "pattern": "^account-[0-9]{8}$"},
		"status": {"enum": ["placed", "paid", "shipped"]},
		"currency": {"type": "string", "minLength": 3, "maxLength": 3},
		"amount": {"type": "integer", "minimum": 0},
		"filler": {"type": "string", "maxLength": 1000}
	}
}`

func orderSchema() (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(orderSchemaText)))
	if err != nil {
		return nil, fmt.Errorf("drain: schema: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("order.json", document); err != nil {
		return nil, fmt.Errorf("drain: schema: %w", err)
	}
	schema, err := compiler.Compile("order.json")
	if err != nil {
		return nil, fmt.Errorf("drain: schema: %w", err)
	}
	return schema, nil
}

// draws makes events from one seed: every run drains the same aggregates.
type draws struct {
	random    *rand.Rand
	account   func() uint64
	contracts []*outbox.ContractFor[order]
}

// newDraws draws accounts uniformly, or with this skew when it is above 1.
func newDraws(zipf float64) *draws {
	random := rand.New(rand.NewPCG(20_260_101, 0))
	d := &draws{random: random, contracts: contracts(nil)}
	d.account = func() uint64 { return random.Uint64N(aggregates) }
	if zipf > 1 {
		d.account = rand.NewZipf(random, zipf, 1, aggregates-1).Uint64
	}
	return d
}

func (d *draws) event() outbox.Event {
	filler := make([]byte, fillerBytes/2)
	for i := range filler {
		filler[i] = byte(d.random.Uint32())
	}
	account := accountID(int(d.account()))
	return d.contracts[d.random.IntN(eventTypes)].New(account, order{
		OrderID: outbox.NewID(), AccountID: account, Status: "placed", Currency: "EUR",
		Amount: d.random.Int64N(100_000), Filler: hex.EncodeToString(filler),
	})
}
