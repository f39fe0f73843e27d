package shape

import (
	"fmt"
	"slices"
	"strings"
)

// mayKnowMutants are folders of published modules that are about mutants: the proofs that make some of their own, and
// outbox-torture, whose wrong publishers users may choose in order to see it fail.
var mayKnowMutants = []string{
	"internal/torture", "cmd/outbox-torture", "relay/internal/sim", "relay/internal/modeltest",
}

// mutantSites finds a mutant's name, or a word for one, in what users compile: as text, because neither a comment nor a
// statement of the product may say it.
func (r *Repository) mutantSites(names []string) (findings []Finding) {
	words := slices.Concat([]string{"mutant", "mistaken", "planted"}, names)
	for _, s := range r.sources {
		if s.language == shellLanguage || under(s.path, append([]string{"test"}, mayKnowMutants...)...) ||
			strings.HasSuffix(s.path, "_test.go") {
			continue
		}
		whole := strings.ToLower(s.text)
		for _, word := range words {
			if !strings.Contains(whole, word) { // much faster than line by line
				continue
			}
			for i, line := range s.lines {
				if strings.Contains(strings.ToLower(line), word) {
					findings = append(findings, Finding{s.path, i + 1, fmt.Sprintf("says %q", word)})
				}
			}
		}
	}
	return findings
}
