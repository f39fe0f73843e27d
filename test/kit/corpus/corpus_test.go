package corpus

import (
	"fmt"
	"testing"
)

// A corpus that shrank, or says one thing twice, would prove less than its count.
func TestCorpusIsBigEnough(t *testing.T) {
	t.Parallel()
	inputs := All()
	perGroup := map[string]int{}
	seen := map[string]bool{}
	for _, in := range inputs {
		if seen[in.Name] {
			t.Errorf("%s is there twice", in.Name)
		}
		seen[in.Name] = true
		perGroup[in.Group]++
	}
	if len(inputs) < 200 {
		t.Errorf("%d inputs, want at least 200", len(inputs))
	}
	for _, group := range Groups {
		if perGroup[group] < 10 {
			t.Errorf("group %s has %d inputs, want at least 10", group, perGroup[group])
		}
	}
	t.Log(fmt.Sprint(len(inputs), perGroup))
}
