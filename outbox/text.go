package outbox

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// checkName holds namespaces, event types and aggregate types to one rule.
func checkName(name string) string {
	if name == "" {
		return "missing"
	}
	if len(name) > MaxNameBytes {
		return fmt.Sprintf("%d bytes, the limit is %d", len(name), MaxNameBytes)
	}
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || c != '.' && c != '_' && c != '-') {
			return "must be letters, digits, '.', '_' and '-', and begin with a letter or digit"
		}
	}
	return ""
}

// checkText says what is wrong with an identifier, or "". Control characters forge log lines and
// message headers, and PostgreSQL has no NUL.
func checkText(text string, limit int) string {
	if len(text) > limit {
		return fmt.Sprintf("%d bytes, the limit is %d", len(text), limit)
	}
	if !utf8.ValidString(text) {
		return "not valid UTF-8"
	}
	if strings.ContainsFunc(text, unicode.IsControl) {
		return "holds a control character"
	}
	return ""
}
