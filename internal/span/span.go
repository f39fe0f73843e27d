// Package span writes lengths of time as people say them.
package span

import (
	"fmt"
	"time"
)

// Of is a length of time in its largest unit: 12 ms, 3.4 s, 90 s, 5 min, 40 h, 3 days.
func Of(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", max(0, d.Milliseconds()))
	case d < 10*time.Second:
		return fmt.Sprintf("%g s", d.Truncate(100*time.Millisecond).Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	default:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	}
}
