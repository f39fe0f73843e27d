package outbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// encode turns a payload into JSON without escaping for HTML: the bytes are the event, not a page.
func encode(payload any) (data json.RawMessage, problem string) {
	if raw, ok := payload.(json.RawMessage); ok {
		return bytes.Clone(raw), ""
	}
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(payload); err != nil {
		return nil, "cannot be encoded: " + encodeProblem(err)
	}
	data = bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))
	if holdsReplacement(data) {
		return nil, "a string is not valid UTF-8"
	}
	return data, ""
}

// holdsReplacement finds the escape \ufffd. encoding/json puts it in the place of invalid UTF-8 in a
// Go string, while a U+FFFD that was meant stays the character itself: so it marks a changed value. A
// backslash before it makes it plain text.
func holdsReplacement(data []byte) bool {
	for {
		at := bytes.Index(data, []byte(`\ufffd`))
		if at < 0 {
			return false
		}
		before := at - len(bytes.TrimRight(data[:at], `\`))
		if before%2 == 0 {
			return true
		}
		data = data[at+1:]
	}
}

// encodeProblem keeps the kind of an encoding error and drops values, which it may quote.
func encodeProblem(err error) string {
	var value *json.UnsupportedValueError
	if errors.As(err, &value) {
		return "a value that JSON does not have (NaN, infinity or a cycle)"
	}
	var kind *json.UnsupportedTypeError
	if errors.As(err, &kind) {
		return "a field of type " + kind.Type.String() + ", which JSON does not have"
	}
	return "its MarshalJSON failed"
}

// decodeProblem says where a payload does not fit its Go type, without the value.
func decodeProblem(err error) string {
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		return fmt.Sprintf("field %q must be a %s", mismatch.Field, mismatch.Type)
	}
	return "does not fit the contract's payload type"
}

func checkData(data json.RawMessage) string {
	if problem := checkDocument(data); problem != "" {
		return problem
	}
	// Only an object can gain a field later without breaking its readers.
	if trimmed := bytes.TrimLeft(data, " \t\r\n"); trimmed[0] != '{' {
		return "must be a JSON object"
	}
	return ""
}
