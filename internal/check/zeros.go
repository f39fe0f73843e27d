package check

// Figure is a counter under the name that the last line of a proof has for it.
type Figure struct {
	Name string
	Of   Counter
}

// Zeros are the counters that must be zero in every proof of a relay, in the order of its last line.
func Zeros() []Figure {
	return []Figure{
		{"lost", Lost},
		{"phantom", Phantom},
		{"corrupted", Corrupted},
		{"order", OrderViolations},
		{"stuck", Stuck},
		{"illegal", IllegalTransitions},
		{"unexplained", DuplicatesUnexplained},
		{"wrong_charges", ChargedWrongly},
		{"overlaps", OwnersOverlapping},
		{"stale_applied", StaleSettlesApplied},
		{"dead_without_letter", DeadWithoutLetter},
		{"letter_without_dead", LetterWithoutDead},
		{"held_without_row", HeldWithoutRow},
		{"row_without_held", RowWithoutHeld},
		{"held_differs", HeldDiffers},
		{"malformed", Malformed},
		{"unresolved", Unresolved},
	}
}
