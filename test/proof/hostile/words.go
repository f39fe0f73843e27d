package hostile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/posthaste-dev/posthaste/test/kit/corpus"
)

// secret is what payloads, headers and errors hold, and no log and no column for errors may. It looks like a word.
const secret = "s3cr3tCanary9wq"

// longest is how many characters an error, or any value of a log line, may have.
const longest = 2048

// unfit says what is wrong with a text that people and tools read: it is short, one line, printable.
func unfit(text string) string {
	switch {
	case !utf8.ValidString(text):
		return "it is not UTF-8"
	case utf8.RuneCountInString(text) > longest:
		return fmt.Sprintf("it has %d characters", utf8.RuneCountInString(text))
	case strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
	}):
		return "it has control characters"
	}
	return ""
}

// leaks counts the canaries in a text. Those of the corpus may stand in names as well, which are logged.
func leaks(text string) int { return strings.Count(text, secret) + strings.Count(text, corpus.Canary) }

// logBook keeps what a relay logs, for the checker, when it has ended.
type logBook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends. A handler writes one line at a time.
func (b *logBook) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(line)
}

// noEvent is in place of an event's id where a line is about a topic.
const noEvent = "no event"

// logged is what a log says: how often canaries, and panics by event id.
type logged struct {
	lines    int
	canaries int
	panics   map[string]bool
	problems []string
}

// names are the values that name an event. They are not secret, and a canary may stand in them.
var names = map[string]bool{
	"event_id": true, "event_type": true, "aggregate_type": true, "aggregate_id": true, "topic": true,
}

// read checks every line.
func (b *logBook) read() logged {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := logged{panics: map[string]bool{}}
	scanner := bufio.NewScanner(&b.text)
	scanner.Buffer(nil, 64<<20)
	for scanner.Scan() {
		found.lines++
		found.canaries += strings.Count(scanner.Text(), secret)
		var values map[string]any
		if err := json.Unmarshal(scanner.Bytes(), &values); err != nil {
			found.problems = append(found.problems, fmt.Sprintf("a log line is not JSON: %.200q", scanner.Text()))
			continue
		}
		for name, value := range values {
			text := fmt.Sprint(value)
			if names[name] {
				if n := utf8.RuneCountInString(text); n > longest {
					found.problems = append(found.problems, fmt.Sprintf("log: %s has %d characters", name, n))
				}
				continue
			}
			if problem := unfit(text); problem != "" {
				found.problems = append(found.problems, fmt.Sprintf("log: %s: %s: %.200q", name, problem, text))
			}
			if name == "error" {
				found.canaries += strings.Count(text, corpus.Canary)
			}
		}
		if strings.Contains(fmt.Sprint(values["error"]), "panicked") {
			id, is := values["event_id"].(string)
			if !is {
				id = noEvent
			}
			found.panics[id] = true
		}
	}
	if err := scanner.Err(); err != nil {
		found.problems = append(found.problems, fmt.Sprintf("the log cannot be read: %v", err))
	}
	return found
}
