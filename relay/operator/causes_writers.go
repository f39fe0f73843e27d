package operator

import (
	"fmt"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/internal/span"
	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/relay/internal/idtime"
)

// drawn is until when the event may have drawn its number, which nobody writes down: its transaction had begun, and its
// id was made, just before that and by another clock.
func (f *facts) drawn() time.Time {
	at := f.event.CreatedAt
	if made := idtime.Of(f.event.ID); made.After(at) {
		at = made
	}
	return at.Add(drawSlack)
}

// drawSlack is how much later than that the number may have been drawn.
const drawSlack = time.Second

// openBefore lists transactions that may have drawn a lower number. They keep nothing: relays read past them, and go
// back to their numbers when they end.
func (f *facts) openBefore() []Cause {
	if f.event.State != state.Ready.String() {
		return nil
	}
	var before []openWriter
	unseen := false
	for _, w := range f.writers {
		if w.since == nil || w.since.Before(f.drawn()) {
			before, unseen = append(before, w), unseen || w.since == nil
		}
	}
	if len(before) == 0 {
		return nil
	}
	c := Cause{
		Code: CauseOpenWriter, Says: "A transaction that may have drawn a lower number is not committed: " +
			f.list(before) + ". It delays its own events and no others: those show when it commits, and go out behind " +
			"this one, also of the same aggregate.",
		others: true, // and nobody knows whose
		Do:     "if it is older than it should be, end what holds it open",
	}
	if unseen {
		c.Do = "to see how old it is: GRANT pg_read_all_stats TO this role"
	}
	return []Cause{c}
}

// list names transactions: their process, who they are, and for how long.
func (f *facts) list(writers []openWriter) string {
	var texts []string
	for _, w := range writers[:min(len(writers), 5)] {
		text := fmt.Sprintf("pid %d", w.pid)
		if w.prepared != "" {
			text = "prepared transaction " + quote(w.prepared)
		}
		var about []string
		for _, part := range []string{w.role, w.application, w.state} {
			if part != "" {
				about = append(about, clean.Line(part))
			}
		}
		if len(about) > 0 {
			text += " (" + strings.Join(about, ", ") + ")"
		}
		if w.since != nil {
			text += ", open for " + span.Of(f.now.Sub(*w.since))
		} else {
			text += ", its age is not for this role to see"
		}
		texts = append(texts, text)
	}
	if more := len(writers) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}
