package redisinbox

import "github.com/posthaste-dev/posthaste/internal/planted"

// mistaken is the text of a script, with a mistake in it where one was planted.
func mistaken(file, text string) string {
	if !planted.Built {
		return text
	}
	return planted.Text(file, text,
		planted.Change{Bug: planted.FinishWithoutToken, File: "put.lua", From: "found == ARGV[1] then", To: "found == ARGV[1] or string.sub(ARGV[2], 1, 5) == 'done:' then"},
		planted.Change{Bug: planted.FreedWithoutToken, File: "remove.lua", From: "if string.sub(found, 1, #ARGV[1]) ~= ARGV[1] then", To: "if false then"},
	)
}
