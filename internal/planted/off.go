//go:build !planted

package planted

// Built tells whether mistakes can be made.
const Built = false

// Is tells whether this is the mistake that the process is to make.
func Is(Bug) bool { return false }
