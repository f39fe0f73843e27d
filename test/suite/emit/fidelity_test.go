package emit

import (
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
)

// S3: what is stored are the bytes that were emitted, and not what a database makes of them: the order of the
// keys, the doubles among them, the blanks, the way a number is written.
func TestThePayloadIsStoredByteForByte(t *testing.T) {
	t.Parallel()
	contract := outbox.Define[rawData](outbox.Contract{Type: "order_written", Aggregate: "order", Topic: "orders"})
	onEach(t, func(t *testing.T, p env) {
		for _, data := range []string{`{"b":1,"a":2}`, `{"a":1,"a":2}`, `{"total":1.50}`, `{"long name":1,"b":1e2}`} {
			events := []outbox.Event{contract.New("1", rawData(data)), contract.New("2", rawData(data))}
			for _, list := range [][]outbox.Event{events[:1], events} { // one and many are two statements
				tx := p.begin(t)
				receipts, err := outbox.Emit(t.Context(), outbox.InSchema(tx, p.Schema), list...)
				if err != nil {
					t.Fatal(err)
				}
				for _, receipt := range receipts {
					var stored string
					err := tx.QueryRow(t.Context(),
						p.SQL("SELECT payload_json::text FROM {schema}.outbox_events WHERE id = $1::text::uuid"),
						receipt.ID.String()).Scan(&stored)
					if err != nil {
						t.Fatal(err)
					}
					if !strings.HasPrefix(stored, `{"version":1,"eventId":"`+receipt.ID.String()+`",`) ||
						!strings.HasSuffix(stored, `"data":`+data+`}`) {
						t.Errorf("%s is stored in %s", data, stored)
					}
				}
			}
		}
	})
}

// rawData encodes itself.
type rawData string

func (r rawData) MarshalJSON() ([]byte, error) { return []byte(r), nil }
