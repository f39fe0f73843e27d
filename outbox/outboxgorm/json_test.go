package outboxgorm

import (
	"encoding/json"
	"testing"
)

func TestJSONKeepsTheBytes(t *testing.T) {
	t.Parallel()
	const document = `{ "b":1,"a":2,"a":1.50 }`
	for name, value := range map[string]any{"bytes": []byte(document), "text": document} {
		var scanned JSON
		if err := scanned.Scan(value); err != nil {
			t.Fatal(err)
		}
		if buffer, ok := value.([]byte); ok {
			buffer[0] = '#' // a driver uses its buffer again
		}
		if string(scanned) != document {
			t.Errorf("%s: scanned %s", name, scanned)
		}
		if sent, err := scanned.Value(); err != nil || sent != document {
			t.Errorf("%s: sent %v (%v), want the text", name, sent, err)
		}
	}
}

func TestJSONKnowsNull(t *testing.T) {
	t.Parallel()
	document := JSON(`{}`)
	if err := document.Scan(nil); err != nil || document != nil {
		t.Errorf("scanned %s (%v), want nil", document, err)
	}
	if sent, err := document.Value(); err != nil || sent != nil {
		t.Errorf("sent %v (%v), want nil", sent, err)
	}
	if err := document.Scan(1); err == nil {
		t.Error("a number was scanned")
	}
}

func TestJSONInJSON(t *testing.T) {
	t.Parallel()
	type answer struct{ Payload, None JSON }
	encoded, err := json.Marshal(answer{Payload: JSON(`{"a":1}`)})
	if err != nil || string(encoded) != `{"Payload":{"a":1},"None":null}` {
		t.Fatalf("encoded %s (%v)", encoded, err)
	}
	var decoded answer
	if err := json.Unmarshal(encoded, &decoded); err != nil || string(decoded.Payload) != `{"a":1}` {
		t.Errorf("decoded %s (%v)", decoded.Payload, err)
	}
}
