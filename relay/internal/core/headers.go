package core

import (
	"bytes"
	"encoding/json"
)

// ReadHeaders reads the headers of an event, and tells whether they are an object of texts: otherwise it is not
// published. A null would pass for an empty text.
func ReadHeaders(headers []byte, into *map[string]string) bool {
	if err := json.Unmarshal(headers, into); err != nil || *into == nil {
		return false
	}
	if !bytes.Contains(headers, []byte("null")) {
		return true
	}
	var values map[string]*string
	if err := json.Unmarshal(headers, &values); err != nil {
		return false
	}
	for _, value := range values {
		if value == nil {
			return false
		}
	}
	return true
}
