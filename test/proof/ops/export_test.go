package ops

// Forbidden is how much a viewer tries.
func Forbidden() int { return len(forbidden()) }
