package natsjetstream

import (
	"net/url"
	"strings"
)

// A message with this attribute is a CloudEvent in binary mode, and the binding of CloudEvents to NATS says how the
// values of its attributes travel: percent-encoded. Readers that know the binding do not know our encoded words.
const (
	cloudEventPrefix  = "ce-"
	cloudEventVersion = "ce-specversion"
)

// percentEncode encodes what the binding names: the space, the quote, the percent sign, and all that is not printable
// ASCII.
func percentEncode(value string) string {
	if !strings.ContainsFunc(value, func(r rune) bool { return r > '~' || mustEncode(byte(r)) }) {
		return value
	}
	const digits = "0123456789ABCDEF"
	encoded := make([]byte, 0, 3*len(value))
	for i := range len(value) {
		if c := value[i]; mustEncode(c) {
			encoded = append(encoded, '%', digits[c>>4], digits[c&15])
		} else {
			encoded = append(encoded, c)
		}
	}
	return string(encoded)
}

func mustEncode(c byte) bool { return c <= ' ' || c == '"' || c == '%' || c > '~' }

// percentDecode reads it back. What was not encoded like this stays as it is.
func percentDecode(value string) string {
	decoded, err := url.PathUnescape(value)
	if err != nil {
		return value
	}
	return decoded
}
