package input

import (
	"encoding/json"
	"regexp"
)

// jsonEscape is an escape of JSON, surrogates in pairs.
var jsonEscape = regexp.MustCompile(`\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|.)`)

// YAMLOfJSON rewrites what JSON may write and YAML does not read, line by line: the escapes \/ and those of
// surrogate pairs. What is not JSON stays as it is.
func YAMLOfJSON(text []byte) []byte {
	if !json.Valid(text) {
		return text
	}
	return jsonEscape.ReplaceAllFunc(text, func(escape []byte) []byte {
		var meant string
		if escape[1] != '/' && len(escape) == 2 {
			return escape
		}
		if err := json.Unmarshal([]byte(`"`+string(escape)+`"`), &meant); err != nil {
			return escape
		}
		return []byte(meant)
	})
}
