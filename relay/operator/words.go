package operator

import (
	"fmt"
	"strings"

	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/internal/shell"
	"github.com/posthaste-dev/posthaste/outbox"
)

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func relays(n int) string { return plural(n, "relay") }

// are is "3 relays are".
func are(n int) string {
	if n == 1 {
		return "1 relay is"
	}
	return relays(n) + " are"
}

// quote makes a text of somebody else's fit for a sentence.
func quote(text string) string {
	text = clean.Line(text)
	if runes := []rune(text); len(runes) > 300 {
		text = string(runes[:300]) + "…"
	}
	return `"` + text + `"`
}

// someOf names a few of many.
func someOf(names []string) string {
	if len(names) > 3 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), len(names)-3)
	}
	return strings.Join(names, ", ")
}

// decide is a command about an event. It needs a reason, which only who decides can fill in.
func decide(verb, id string) string { return "outboxctl " + verb + " " + id + " " + reasonWord }

// reasonWord is what every decision needs, and nobody but the person who makes it can fill in.
const reasonWord = `--reason "..."`

// commandsIn has the commands of an advice speak of the outbox in a schema.
func commandsIn(schema, advice string) string {
	if schema == outbox.DefaultSchema {
		return advice
	}
	return strings.ReplaceAll(advice, "outboxctl ", "outboxctl --schema "+shell.Word(schema)+" ")
}
