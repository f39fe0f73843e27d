package shell_test

import (
	"testing"

	"github.com/posthaste-dev/posthaste/internal/shell"
)

func TestWord(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "''", "orders": "orders", "a-b_c./:=@,+9": "a-b_c./:=@,+9", "two words": "'two words'", "$HOME": "'$HOME'",
		"it's": `'it'\''s'`, `Shop "1"`: `'Shop "1"'`, "größe": "'größe'", "a\nb": "'a\nb'",
	} {
		if got := shell.Word(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
