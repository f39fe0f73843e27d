package deploy

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// section is the text below a heading, up to the next one of its level or above.
func section(page, heading string) string {
	_, text, found := strings.Cut(page, "\n"+heading+"\n")
	if !found {
		return ""
	}
	level := len(heading) - len(strings.TrimLeft(heading, "#"))
	if next := regexp.MustCompile(fmt.Sprintf(`(?m)^#{1,%d} `, level)).FindStringIndex(text); next != nil {
		text = text[:next[0]]
	}
	return strings.Join(strings.Fields(text), " ")
}

// OP-4: the page tells what the write-up has to tell. Each line is one thing that was asked for, where it is told, and
// words without which it is not told.
func TestTheOutboxPageTellsWhatWasAsked(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/outbox.md")
	for _, c := range []struct{ asked, heading, words string }{
		{"why a table at all", "## The problem", "in the transaction of the change|Either both are there or neither"},
		{
			"what the worker does", "## The path of an event",
			"Leases lanes, reads, publishes, settles|knows nothing of the domain",
		},
		{
			"transaction, broker, consumer", "## The path of an event",
			"INSERT INTO outbox_events|under the event's id|seen this id?",
		},
		{"how it claims", "## How it claims", "`outbox_lanes`|a lease of|Any number of relays|token"},
		{"why SKIP LOCKED", "### Why SKIP LOCKED, and where", "`FOR UPDATE SKIP LOCKED` makes competing workers pass by"},
		{"why not for rows", "### Why SKIP LOCKED, and where", "two workers publish the same row|the order is lost"},
		{"failures and retries", "## When something fails", "an attempt is counted|dead at once|`outbox_dlq`|`block`|parked"},
		{"outages", "## When something fails", "Nothing is counted and nothing dies"},
		{"at least once", "## At least once, and duplicates", "Between the broker's acknowledgement and the settle"},
		{"duplicates", "## At least once, and duplicates", "`redelivered=true`|the same `event_id`|Why is that acceptable?"},
		{
			"what consumers must do", "## At least once, and duplicates",
			"**duplicates are possible, and consumers must be idempotent.**",
		},
		{"why Redis", "### Why Redis", "`SET key NX EX ttl` is one atomic step|Check before the effect"},
		{"and where not", "### Why Redis", "Where the effect is **in** PostgreSQL, do not use Redis"},
		{
			"crashes", "## Every crash, and why it is safe",
			"What is not committed did not happen|What is not settled is sent again",
		},
		{"how to run it", "## What a new team member does first", "make services|make run-outbox-publisher"},
	} {
		text := section(page, c.heading)
		if text == "" {
			t.Errorf("%s: docs/outbox.md has no section %q", c.asked, c.heading)
			continue
		}
		for words := range strings.SplitSeq(c.words, "|") {
			if !strings.Contains(text, words) {
				t.Errorf("%s: %q does not say %q", c.asked, c.heading, words)
			}
		}
	}
	if !strings.Contains(read(t, "README.md"), "(docs/outbox.md)") {
		t.Error("README.md does not link docs/outbox.md")
	}
	if got := section("\n## A\nb\n### C\nd\n## E\nf\n", "## A"); got != "b ### C d" {
		t.Errorf("a section is %q", got)
	}
}

// OP-4: the page is accurate. The numbers that it names are those of the program's own reference.
func TestTheOutboxPageHasTheProgramsNumbers(t *testing.T) {
	t.Parallel()
	page := strings.Join(strings.Fields(read(t, "docs/outbox.md")), " ")
	reference := read(t, "docs/reference/configuration.md")
	for key, c := range map[string]struct{ value, said string }{
		"relay.max_attempts":         {"10", "dead after `relay.max_attempts` (10)"},
		"relay.base_delay":           {"1s", "again after 1 s, 2 s, 4 s"},
		"relay.max_delay":            {"5m", "up to 5 minutes"},
		"relay.lease":                {"30s", "a lease of 30 seconds"},
		"relay.unknown_type_max_age": {"24h", "dead after 24 h"},
		"retention.published":        {"720h", "720 hours here, at least as long as the events are retained"},
	} {
		row := regexp.MustCompile("(?m)^\\| `" + regexp.QuoteMeta(key) + "` \\| \\w+ \\| `" + c.value + "` \\|")
		if !row.MatchString(reference) {
			t.Errorf("%s is not %s any more: docs/outbox.md says %q", key, c.value, c.said)
		}
		if !strings.Contains(page, c.said) {
			t.Errorf("docs/outbox.md does not say %q", c.said)
		}
	}
}
