package natsjetstream

import (
	"encoding/base64"
	"fmt"
	"strings"
	"unicode"

	"github.com/nats-io/nats.go"
)

// reserved is how names begin that mean something to the server: Nats-Rollup alone could empty a stream.
const reserved = "nats-"

// isReserved tells whether a header of this name belongs to NATS.
func isReserved(name string) bool {
	return len(name) >= len(reserved) && strings.EqualFold(name[:len(reserved)], reserved)
}

// The client trims values and turns line breaks into spaces. What it would change travels as an encoded
// word of RFC 2047, always in base64 and in one piece.
const (
	wordStart = "=?utf-8?b?"
	wordEnd   = "?="
)

// encodeHeader makes the headers of a message from its attributes.
func encodeHeader(attributes map[string]string) (nats.Header, error) {
	header := make(nats.Header, len(attributes)+2)
	_, isCloudEvent := attributes[cloudEventVersion]
	for name, value := range attributes {
		if isReserved(name) {
			return nil, fmt.Errorf("the attribute %q would be an instruction to the server", name)
		}
		if isCloudEvent && strings.HasPrefix(name, cloudEventPrefix) {
			header[name] = []string{percentEncode(value)}
		} else {
			header[name] = []string{headerValue(value)}
		}
	}
	return header, nil
}

// headerValue makes the value of a header: itself, or an encoded word.
func headerValue(value string) string {
	plain := strings.TrimSpace(value) == value && !strings.HasPrefix(value, "=?") &&
		!strings.ContainsFunc(value, unicode.IsControl)
	if plain {
		return value
	}
	return wordStart + base64.StdEncoding.EncodeToString([]byte(value)) + wordEnd
}

// Attributes reads the attributes of a message from its headers, as they were when it was published.
// Headers that belong to NATS are left out.
func Attributes(header nats.Header) map[string]string {
	attributes := make(map[string]string, len(header))
	_, isCloudEvent := header[cloudEventVersion]
	for name, values := range header {
		if len(values) == 0 || isReserved(name) {
			continue
		}
		if isCloudEvent && strings.HasPrefix(name, cloudEventPrefix) {
			attributes[name] = percentDecode(values[0])
		} else {
			attributes[name] = plain(values[0])
		}
	}
	return attributes
}

func plain(value string) string {
	word, isWord := strings.CutPrefix(value, wordStart)
	word, ends := strings.CutSuffix(word, wordEnd)
	if !isWord || !ends {
		return value
	}
	text, err := base64.StdEncoding.DecodeString(word)
	if err != nil {
		return value
	}
	return string(text)
}
