// Package sqltext prepares the SQL files of the relay's packages.
package sqltext

import (
	"strings"

	"github.com/jackc/pgx/v5"
)

// In is the text of a file with the schema's name in it.
func In(schema, text string) string {
	return strings.ReplaceAll(Bare(text), "{schema}", pgx.Identifier{schema}.Sanitize())
}

// Bare is a text without the lines of comment, which the server would read again every time.
func Bare(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "--") {
			lines = append(lines, line)
		}
	}
	return strings.TrimSpace(strings.Join(lines, ""))
}
