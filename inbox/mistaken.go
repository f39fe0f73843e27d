package inbox

import "github.com/posthaste-dev/posthaste/internal/planted"

// mistaken is the text of a statement, with a mistake in it where one was planted.
func mistaken(file, text string) string {
	if !planted.Built {
		return text
	}
	const seen = "SELECT (NOT EXISTS (SELECT FROM {schema}.inbox_handled h WHERE h.consumer = $1::text AND h.event_id = $2::text::uuid))::integer::text"
	return planted.Text(file, text,
		planted.Change{Bug: planted.FirstByLooking, File: "first", From: "SELECT count(*)::text FROM marked", To: seen},
		planted.Change{Bug: planted.OlderIsNewer, File: "newer", From: " WHERE n.seq < excluded.seq", To: ""},
	)
}
