package input

import (
	"encoding/json"
	"fmt"
	"regexp"
)

// jsonEscape is an escape of JSON, surrogates in pairs.
var jsonEscape = regexp.MustCompile(`\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|.)`)

// notInYAML are the characters that YAML does not take as they are, or takes for the end of a line.
var notInYAML = regexp.MustCompile(`[\x{7f}-\x{9f}\x{2028}\x{2029}\x{feff}\x{fffe}\x{ffff}]`)

// YAMLOfJSON rewrites what JSON may write and YAML does not read, line by line: the escapes \/ and those of
// surrogate pairs, and characters that it wants escaped. What is not JSON stays as it is.
func YAMLOfJSON(text []byte) []byte {
	if !json.Valid(text) {
		return text
	}
	text = jsonEscape.ReplaceAllFunc(text, func(escape []byte) []byte {
		var meant string
		if escape[1] != '/' && len(escape) == 2 {
			return escape
		}
		if err := json.Unmarshal([]byte(`"`+string(escape)+`"`), &meant); err != nil {
			return escape
		}
		return []byte(meant)
	})
	return notInYAML.ReplaceAllFunc(text, func(character []byte) []byte {
		return fmt.Appendf(nil, `\u%04x`, []rune(string(character))[0])
	})
}
