//go:build !linux

package pgstore

import "time"

// setUserTimeout does nothing here: keep-alives and deadlines remain.
func setUserTimeout(uintptr, time.Duration) {}
