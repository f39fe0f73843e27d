package shape

import (
	"slices"
	"testing"
)

// An exception that nothing needs any more is an open door.
func TestEveryExceptionIsNeeded(t *testing.T) {
	t.Parallel()
	r, err := Read("../../..")
	if err != nil {
		t.Fatal(err)
	}
	known := byForm()
	for _, a := range allowedWords {
		if _, old := known[a.word]; !old || len(a.reason) < 20 {
			t.Errorf("%s: it is no old word, or has no reason: %q", a.word, a.reason)
		}
		needed := slices.ContainsFunc(r.sources, func(s *source) bool {
			return s.isGo() && (a.under == "" || under(s.path, a.under)) &&
				slices.ContainsFunc(r.declared(s.file), func(n identifier) bool {
					return (a.name == "" || n.name == a.name) && slices.Contains(words(n.name), a.word)
				})
		})
		if !needed {
			t.Errorf("no name needs the exception %+v", a)
		}
	}
}
