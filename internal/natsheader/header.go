// Package natsheader says how attributes of messages travel as headers of NATS, for those who publish and those who
// consume.
package natsheader

import (
	"encoding/base64"
	"fmt"
	"strings"
	"unicode"
)

// reserved is how names begin that mean something to the server: Nats-Rollup alone could empty a stream.
const reserved = "nats-"

// Reserved tells whether a header of this name belongs to NATS.
func Reserved(name string) bool {
	return len(name) >= len(reserved) && strings.EqualFold(name[:len(reserved)], reserved)
}

// The client trims values and turns line breaks into spaces. What it would change travels as an encoded
// word of RFC 2047, always in base64 and in one piece.
const (
	wordStart = "=?utf-8?b?"
	wordEnd   = "?="
)

// Encode makes the headers of a message from its attributes.
func Encode(attributes map[string]string) (map[string][]string, error) {
	header := make(map[string][]string, len(attributes)+2)
	_, isCloudEvent := attributes[cloudEventVersion]
	for name, value := range attributes {
		if Reserved(name) {
			return nil, fmt.Errorf("the attribute %q would be an instruction to the server", name)
		}
		if isCloudEvent && strings.HasPrefix(name, cloudEventPrefix) {
			header[name] = []string{percentEncode(value)}
		} else {
			header[name] = []string{Word(value)}
		}
	}
	return header, nil
}

// Word makes the value of a header: itself, or an encoded word.
func Word(value string) string {
	plain := strings.TrimSpace(value) == value && !strings.HasPrefix(value, "=?") &&
		!strings.ContainsFunc(value, unicode.IsControl)
	if plain {
		return value
	}
	return wordStart + base64.StdEncoding.EncodeToString([]byte(value)) + wordEnd
}

// Decode reads the attributes of a message from its headers, as they were when it was published.
// Headers that belong to NATS are left out.
func Decode(header map[string][]string) map[string]string {
	attributes := make(map[string]string, len(header))
	_, isCloudEvent := header[cloudEventVersion]
	for name, values := range header {
		if len(values) == 0 || Reserved(name) {
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
