package docs

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

const (
	mostSentences = 3 // of an entry: two plain ones, and one on where to read on
	fewestWords   = 60
)

var (
	sentencePattern = regexp.MustCompile(`[.!?](?:\s|$)`)
	statePattern    = regexp.MustCompile(`(?m)^\| [0-7] \| (\w+)`)
)

// checkGlossary wants the words in the order of the alphabet, each once, with a few sentences on what it means, and
// all those that must be there.
func checkGlossary(page string, must []string) (problems []string) {
	seen, last := map[string]bool{}, ""
	for _, section := range strings.Split("\n"+page, "\n## ")[1:] {
		word, text, _ := strings.Cut(section, "\n")
		lower := strings.ToLower(word)
		switch {
		case seen[lower]:
			problems = append(problems, word+": stands there twice")
		case lower < last:
			problems = append(problems, fmt.Sprintf("%s: stands behind %s", word, last))
		}
		seen[lower], last = true, lower
		text = strings.TrimSpace(text)
		if !strings.HasSuffix(text, ".") {
			problems = append(problems, word+": its meaning is no sentence")
		}
		if n := len(sentencePattern.FindAllString(text, -1)); n > mostSentences {
			problems = append(problems, fmt.Sprintf("%s: %d sentences: that is a page", word, n))
		}
	}
	for _, word := range must {
		if !seen[word] {
			problems = append(problems, word+": is missing")
		}
	}
	return problems
}

func TestTheGlossaryHasEachWordOnce(t *testing.T) {
	t.Parallel()
	const page = "docs/glossary.md"
	must := []string{
		"aggregate", "attempt", "barrier", "charge", "checker", "consumer", "contract", "crash point", "cursor",
		"dead and blocking", "dead letter", "dedupe key", "discard", "erase", "event", "fence", "floor", "handler", "healthy",
		"heartbeat", "hold", "inbox", "janitor role", "lane", "lease", "marker", "mutant", "namespace", "outbox",
		"outbox row", "outbox-publisher", "park", "pause", "paused", "probing", "proof", "publisher", "quarantine",
		"redeliver", "redrive", "reissue", "relay", "retention", "settle", "skip", "survey", "suspect", "tenant", "token",
		"topic", "watermark",
	}
	states := statePattern.FindAllStringSubmatch(read(t, "docs/reference/schema.md"), -1)
	if len(states) != 8 {
		t.Errorf("docs/reference/schema.md has %d states: this test does not see them", len(states))
	}
	for _, state := range states {
		must = append(must, state[1])
	}
	text := read(t, page)
	report(t, page, checkGlossary(text, must))
	if words := strings.Count(text, "\n## "); words < fewestWords {
		t.Errorf("%s has %d words: this test does not see them", page, words)
	}
}

// The check itself must be able to refuse.
func TestABadGlossaryIsFound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ page, problem string }{
		"all is well":  {"# Page\n\n## Event\n\nIt happened.\n\n## lane\n\nA part. One of 64.\n", ""},
		"out of order": {"## lane\n\nA part.\n\n## event\n\nIt happened.\n", "event: stands behind lane"},
		"twice": {
			"## event\n\nIt happened.\n\n## Event\n\nIt did.\n\n## lane\n\nA part.\n", "Event: stands there twice",
		},
		"without a text": {"## event\n\n## lane\n\nA part.\n", "event: its meaning is no sentence"},
		"no sentence":    {"## event\n\nIt happened.\n\n## lane\n\nA part\n", "lane: its meaning is no sentence"},
		"too long":       {"## event\n\nA. B. C. D.\n\n## lane\n\nA part.\n", "event: 4 sentences"},
		"a word missing": {"## event\n\nIt happened.\n", "lane: is missing"},
	} {
		expect(t, name, checkGlossary(test.page, []string{"event", "lane"}), test.problem)
	}
}
