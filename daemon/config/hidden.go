package config

import (
	"encoding/json"
	"log/slog"
	"regexp"
	"strings"
)

// Hidden is a secret. Whatever prints, logs or encodes it gets a text without the secret.
type Hidden struct {
	value string
}

// Hide makes a secret of a text.
func Hide(text string) Hidden { return Hidden{text} }

// Reveal is the secret itself.
func (h Hidden) Reveal() string { return h.value }

// String is what may be shown: of a URL its scheme, host and database, of anything else that it is there.
func (h Hidden) String() string { return redact(h.value) }

// GoString is String, for %#v.
func (h Hidden) GoString() string { return redact(h.value) }

// MarshalJSON encodes what may be shown.
func (h Hidden) MarshalJSON() ([]byte, error) {
	return json.Marshal(redact(h.value)) //nolint:wrapcheck // a string cannot fail
}

// LogValue logs what may be shown.
func (h Hidden) LogValue() slog.Value { return slog.StringValue(redact(h.value)) }

const mark = "***"

var (
	urlParts = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)(/[^?#]*)?([?#].*)?$`)
	hostPort = regexp.MustCompile(`^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)
	database = regexp.MustCompile(`^/[A-Za-z0-9._-]{0,63}$`)
)

// redact keeps scheme, host and database of a URL, or of several with commas between. Where a password
// could be taken for one of them, for instance one with a bare / or @ in it, it keeps nothing.
func redact(secret string) string {
	if secret == "" {
		return ""
	}
	if strings.Count(secret, "://") < 2 {
		return redactURL(secret)
	}
	if strings.Contains(secret, "@") { // several, and nobody can say where a password ends
		return mark
	}
	var shown []string
	for part := range strings.SplitSeq(secret, ",") {
		shown = append(shown, redactURL(part))
	}
	return strings.Join(shown, ",")
}

func redactURL(secret string) string {
	parts := urlParts.FindStringSubmatch(secret)
	if parts == nil {
		return mark
	}
	scheme, authority, path, query := parts[1], parts[2], parts[3], parts[4]
	if strings.Contains(path+query, "@") {
		return mark
	}
	at := strings.LastIndex(authority, "@")
	for host := range strings.SplitSeq(authority[at+1:], ",") {
		if !hostPort.MatchString(host) {
			return mark
		}
	}
	shown := scheme + "://"
	if at >= 0 {
		shown += mark + "@"
	}
	shown += authority[at+1:]
	switch {
	case path == "" || database.MatchString(path):
		shown += path
	default:
		shown += "/" + mark
	}
	if query != "" {
		shown += query[:1] + mark
	}
	return shown
}

var quoted = regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*(?:\"|$)|'[^']*(?:'|$)|`[^`]*(?:`|$)")

// scrub takes a secret out of what a check said about it: errors of the standard library quote.
func scrub(text, secret string) string {
	if secret != "" {
		text = strings.ReplaceAll(text, secret, mark)
	}
	return quoted.ReplaceAllString(text, `"`+mark+`"`)
}
