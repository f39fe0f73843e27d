package schema

import "github.com/posthaste-dev/posthaste/internal/planted"

// mistaken is the text of a migration, with a mistake in it where one was planted.
func mistaken(file, text string) string {
	if !planted.Built {
		return text
	}
	return planted.Text(file, text, planted.Change{Bug: planted.SequenceCache, File: "00001_events.sql", From: "AS IDENTITY (CACHE 1)", To: "AS IDENTITY (CACHE 20)"})
}
