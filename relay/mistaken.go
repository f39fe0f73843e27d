package relay

import "github.com/posthaste-dev/posthaste/internal/planted"

// mistaken is the text of a statement, with a mistake in it where one was planted.
func mistaken(file, text string) string {
	if !planted.Built {
		return text
	}
	return planted.Text(file, text,
		planted.Change{Bug: planted.RedriveOfPublished, File: "operate", From: "a.state = ANY ($6::smallint[])", To: "(a.state = ANY ($6::smallint[]) OR a.state = 6)"},
		planted.Change{Bug: planted.RedriveOfPublished, File: "operate", From: "AND e.state = ANY ($6::smallint[])", To: ""},
		planted.Change{Bug: planted.ActionDoneTwice, File: "operate", From: " AND NOT EXISTS (SELECT FROM earlier)", To: ""},
	)
}
