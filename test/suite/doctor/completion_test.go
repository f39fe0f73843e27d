package doctor

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// completeInBash has a real bash load the script that outboxctl prints, and press the tab key behind words as a person
// types them. Of the package bash-completion, which may not be here, it has what the script uses: to take the words
// apart at spaces alone, and to leave out what stands before a colon.
const completeInBash = `
_get_comp_words_by_ref() { words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; cur=${words[cword]}; prev=${words[cword-1]}; }
__ltrim_colon_completions() { COMPREPLY=("${COMPREPLY[@]#"${1%"${1##*:}"}"}"); }
compopt() { :; }
source <(outboxctl completion bash) || exit 1
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE} COMP_TYPE=9
__start_outboxctl
printf '%s\n' "${COMPREPLY[@]}"
`

// TestCompletion: what a shell offers, with what the relays of the outbox know.
func TestCompletion(t *testing.T) {
	t.Parallel()
	e := newEnv(t, pgtest.Servers()[0], build(t))
	e.exec(`INSERT INTO {schema}.outbox_known (relay, event_type, topic) SELECT r.id, t.*
		FROM {schema}.outbox_relays r, (VALUES ('order_created', 'orders'), ('order_paid', 'orders'), ('mail', 'mails')) t`)
	viewer := pgtest.As(t, e.url, e.roles["viewer"])
	press := func(database string, words ...string) []string {
		t.Helper()
		script := append([]string{"--norc", "-c", completeInBash, "bash", "outboxctl"}, words...)
		cmd := exec.CommandContext(t.Context(), "bash", script...)
		cmd.Env = append(cmd.Environ(), "PATH="+e.bin+":/usr/bin:/bin", "DATABASE_URL="+database)
		said, err := cmd.Output()
		if err != nil {
			t.Fatalf("%q: %v\n%s", words, err, said)
		}
		offered := strings.Fields(string(said))
		slices.Sort(offered)
		return offered
	}
	const schema = `--schema='Shop "1"'`
	for line, want := range map[string]string{
		"stat":                          "status",
		"events e":                      "erase explain export",
		"status --output ":              "json ndjson table",
		"check --format p":              "prometheus",
		"grant v":                       "viewer",
		"events list state:d":           "dead discarded",
		"events list st":                "state:",
		"migrate lookups add ":          "published type",
		schema + " emit order":          "order_created order_paid",
		schema + " listen ":             "mails orders",
		schema + " topics pause ord":    "orders",
		schema + " resume --type m":     "mail",
		schema + " dead list type:mail": "mail",
		schema + " redrive ":            "", // ids are nothing that one knows by its beginning
		"--schema=nosuch emit order":    "",
	} {
		words := strings.Split(strings.ReplaceAll(line, schema, "SCHEMA"), " ")
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "SCHEMA", schema)
		}
		if got := strings.Join(press(viewer, words...), " "); got != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
	if got := press("", "emit", "order"); len(got) > 0 {
		t.Errorf("without a database: got %q", got)
	}
}

// TestCompletionOfEveryShell: each script is one that its shell can read, where the shell is here.
func TestCompletionOfEveryShell(t *testing.T) {
	t.Parallel()
	outboxctl := filepath.Join(build(t), "outboxctl")
	for shell, want := range map[string]string{
		"bash": "__start_outboxctl", "zsh": "#compdef outboxctl", "fish": "complete -c outboxctl",
		"powershell": "Register-ArgumentCompleter",
	} {
		script, err := exec.CommandContext(t.Context(), outboxctl, "completion", shell).Output()
		if err != nil || !strings.Contains(string(script), want) || !strings.Contains(string(script), "__complete") {
			t.Errorf("%s: %v\n%.300s", shell, err, script)
		}
		if _, err := exec.LookPath(shell); err != nil || shell == "powershell" {
			continue
		}
		reading := exec.CommandContext(t.Context(), shell, "-n")
		reading.Stdin = strings.NewReader(string(script))
		if said, err := reading.CombinedOutput(); err != nil {
			t.Errorf("%s cannot read it: %v\n%s", shell, err, said)
		}
	}
}
