package outbox

import "github.com/posthaste-dev/posthaste/internal/planted"

// mistaken is the text of a statement, with a mistake in it where one was planted.
func mistaken(file, text string) string {
	if !planted.Built {
		return text
	}
	return planted.Text(file, text,
		planted.Change{Bug: planted.PayloadThroughJSONB, File: "one", From: "$7::text::json", To: "$7::text::jsonb::json"},
		planted.Change{Bug: planted.DedupeWithoutTenant, File: "one_deduped", From: "coalesce($6::text, '')", To: "''"},
		planted.Change{Bug: planted.MismatchSwallowed, File: "one_deduped", From: "ELSE '!' END", To: "ELSE '=' END"},
	)
}
