package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/relay/operator"
)

var update = flag.Bool("update", false, "write the golden files anew")

// call runs a command line without any environment but what is given.
func call(t *testing.T, environment map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = execute(within(t), args, &out, &err, func(name string) string { return environment[name] })
	return code, out.String(), err.String()
}

// TestReferenceIsGenerated: help is read by people and by scripts, so a change of it is a decision.
func TestReferenceIsGenerated(t *testing.T) {
	t.Parallel()
	const page = "../../docs/reference/cli.md"
	want := reference((&rootCommand{}).command())
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != want {
		t.Errorf("%s is not what the commands say: run 'make cli-reference' (%v)", page, err)
	}
}

// TestHelp: every command has an example if it does something, and lines that a terminal can show.
func TestHelp(t *testing.T) {
	t.Parallel()
	commands := 0
	walk((&rootCommand{}).command(), func(cmd *cobra.Command) {
		commands++
		path := strings.Fields(cmd.CommandPath())[1:]
		code, help, stderr := call(t, nil, append(path, "--help")...)
		if code != exitDone || stderr != "" {
			t.Errorf("%q: exit code %d, %s", path, code, stderr)
		}
		if !cmd.HasSubCommands() && !strings.Contains(help, "Examples:\n  "+cmd.CommandPath()) {
			t.Errorf("%q has no example", path)
		}
		for line := range strings.Lines(help) {
			if len(line) > 121 {
				t.Errorf("%q: a line of %d characters: %s", path, len(line), line)
			}
		}
	})
	if commands < 15 {
		t.Errorf("only %d commands were looked at", commands)
	}
}

// TestWrongUseExitsWith2, names the problem, and says where the help is.
func TestWrongUseExitsWith2(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"migrate up --grant publisher=app":     `--grant: there is no part "publisher": use producer`,
		"migrate up --grant relay":             `--grant "relay": write it as PART=ROLE`,
		"migrate up --inbox --grant relay=app": `--grant: there is no part "relay": use consumer`,

		"":                                "a command is missing",
		"migrat":                          `unknown command "migrat"`,
		"migrate":                         "up, down, status, sql or lookups is missing",
		"migrate sideways":                `unknown command "sideways"`,
		"migrate up --nosuch":             "unknown flag: --nosuch",
		"migrate up 5":                    `unknown command "5"`,
		"migrate up --target x":           "invalid argument",
		"migrate up --target 99":          "there is no such version",
		"migrate up --target -1":          "there is no such version",
		"migrate up":                      "no database is given",
		"migrate up --lock-timeout 5":     "missing unit in duration",
		"migrate up --lock-timeout 0s":    "--lock-timeout 0s is too short",
		"migrate status":                  "no database is given",
		"migrate down":                    "--target is missing",
		"migrate down --target 0":         "pass --yes-delete-everything as well",
		"migrate down --target 99":        "there is no such version",
		"migrate sql --version 99":        "there is no such version",
		"grant":                           "grant takes a part and a role",
		"grant relay":                     "grant takes a part and a role",
		"grant publisher app":             `there is no part "publisher": use producer, relay, janitor, viewer, operator`,
		"grant relay app":                 "no database is given",
		"grant relay app --consumers a":   "--consumers is about a consumer of an inbox",
		"grant --inbox relay app":         `there is no part "relay": use consumer, janitor, viewer`,
		"migrate up --inbox --target 5":   "there is no such version, the newest is 4",
		"migrate down --inbox --target 0": "forgets everything that was handled",
		"migrate lookups":                 "add or drop is missing",
		"migrate lookups add state":       `there is no look-up "state": use published or type`,
		"migrate lookups add type":        "no database is given",
		"events":                          "list, get, explain, tail, export or erase is missing",
		"events list typ:x":               "did you mean type?",
		"events list":                     "no database is given",
		"events get x":                    `"x" is no id of an event`,
		"events explain":                  "name one event by its id",
		"events tail --every 1ms":         "is too often",
		"aggregate":                       "show is missing",
		"aggregate show order":            "name one aggregate as TYPE/ID",
		"dead":                            "list, redrive, discard, reissue or edit is missing",
		"dead list state:dead":            "of dead letters it can have",
		"dead redrive":                    "name events by their ids, or write a filter",
		"pause --all":                     "--reason is missing",
		"pause --reason x":                "name one thing: --all or --type NAME",
		"pause --all --type a --reason x --actor ada":   "name one thing",
		"pause --all --reason x":                        "no database is given",
		"pause --restored --reason x":                   "unknown flag: --restored",
		"pause --all --reason x --actor ada":            "no database is given",
		"pause --all --reason x --actor ada --action y": `--action: "y" is no id`,
		"resume":                                    "name one thing",
		"resume --type":                             "flag needs an argument",
		"resume --restored --actor ada":             "--reason is missing",
		"resume --restored --reason x":              "no database is given",
		"topics resume orders":                      "--reason is missing",
		"topics limit orders none":                  "--reason is missing",
		"pauses":                                    "no database is given",
		"prune":                                     "no database is given",
		"prune orders":                              `unknown command "orders"`,
		"prune --published 1s":                      "--published 1s is too short: use 1m or more, or 0s",
		"prune --published -1h":                     "--published -1h0m0s is less than nothing",
		"prune --every 0s":                          "--every and --batch must not be 0",
		"prune --batch 5001":                        "Batch: 5001, must be between 100 and 5000",
		"prune --confirmed yesterday":               `--confirmed "yesterday" is no time like 2026-01-31T00:00:00Z`,
		"dead redrive 7":                            `"7" names no field`,
		"skip 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e": "--reason is missing",
		"skip 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e --actor ada":                       "--reason is missing",
		"skip 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e --reason x":                        "no database is given",
		"skip 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e --actor ada --reason x":            "no database is given",
		"skip 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e --actor ada --reason x --action y": `--action: "y" is no id`,
		"migrate up --database-url postgres://a:b/c@d":                                "the database URL cannot be read",
	} {
		code, stdout, stderr := call(t, nil, strings.Fields(line)...)
		if code != exitUsage || !strings.Contains(stderr, want) || !strings.Contains(stderr, "--help' for how to use it") ||
			stdout != "" {
			t.Errorf("%q: exit code %d, want 2 and %q\n%s%s", line, code, want, stdout, stderr)
		}
	}
}

// TestPasswordsAreNotPrinted: not when the URL is broken, and not when nobody answers.
func TestPasswordsAreNotPrinted(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t"
	for _, address := range []string{
		"postgres://app:" + secret + "@127.0.0.1:1/db?connect_timeout=1",
		"postgres://app:" + secret + "/x@127.0.0.1/db",
		"postgres://app:" + secret + "#x@127.0.0.1/db",
		"postgres://app:" + secret + "%zz@127.0.0.1/db",
		"postgres://app:" + secret + "@127.0.0.1:port/db",
		"postgres://app@127.0.0.1:1/db?password=" + secret,
		"host=127.0.0.1 port=1 user=app password=" + secret,
		"host=127.0.0.1 port=x user=app password=" + secret,
		"host=127.0.0.1 user=app sslmode=" + secret,
		"password=" + secret + " nonsense",
		secret,
	} {
		for _, environment := range []map[string]string{
			{"DATABASE_URL": address}, {"POSTHASTE_DATABASE_URL": address, "DATABASE_URL": secret},
		} {
			for _, line := range []string{
				"migrate up", "migrate down --target 1", "migrate status", "grant relay app", "pauses",
				"pause --all --reason x --actor ada", "prune", "prune --dry-run", "emit a --aggregate order/1",
				"dev", "status", "problems", "doctor", "check", "events list", "events export", "dead list",
				"events explain 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e", "aggregate show a/b", "migrate lookups add",
			} {
				code, stdout, stderr := call(t, environment, strings.Fields(line)...)
				if code == exitDone || strings.Contains(stdout+stderr, secret) {
					t.Errorf("%s with %s: exit code %d\n%s%s", line, address, code, stdout, stderr)
				}
			}
		}
		if code, stdout, stderr := call(t, nil, "migrate", "status", "--database-url", address); code == exitDone ||
			strings.Contains(stdout+stderr, secret) {
			t.Errorf("--database-url %s: exit code %d\n%s%s", address, code, stdout, stderr)
		}
	}
}

// TestNobodyAnswersExitsWith1.
func TestNobodyAnswersExitsWith1(t *testing.T) {
	t.Parallel()
	code, _, stderr := call(t, map[string]string{"DATABASE_URL": "postgres://app@127.0.0.1:1/db"}, "migrate", "up")
	if code != exitFailed || !strings.Contains(stderr, "127.0.0.1") || strings.Contains(stderr, "--help") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// TestSQLNeedsNoDatabase: all migrations, or one, up or down, for a schema or for none.
func TestSQLNeedsNoDatabase(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]struct{ has, hasNot, begins string }{
		"migrate sql":                    {"CREATE TABLE outbox_events (", "DROP TABLE", "-- 00001_events\n"},
		"migrate sql --down":             {"DROP TABLE outbox_events;", "CREATE TABLE", "-- 00012_access, down\n"},
		"migrate sql --inbox":            {"CREATE TABLE inbox_handled (", "outbox_events", "-- 00001_handled\n"},
		"migrate sql --version 2":        {"CREATE TABLE outbox_dedupe (", "CREATE TABLE outbox_events", "-- 00002_emit\n"},
		"migrate sql --version 2 --down": {"DROP TABLE outbox_dedupe;", "DROP TABLE outbox_events", "-- 00002_emit, down\n"},
		"migrate sql --version 3 --schema my\"shop": {
			"CREATE TABLE outbox_lanes", "CREATE TABLE outbox_dedupe", "SET search_path = \"my\"\"shop\";\n",
		},
	} {
		code, stdout, stderr := call(t, nil, strings.Fields(line)...)
		if code != exitDone || !strings.HasPrefix(stdout, want.begins) || !strings.Contains(stdout, want.has) ||
			strings.Contains(stdout, want.hasNot) || stderr != "" {
			t.Errorf("%s: exit code %d %s\n%.300s", line, code, stderr, stdout)
		}
	}
}

// TestPausesSpeakToNoTerminal: whoever pauses chooses the words that others read.
func TestPausesSpeakToNoTerminal(t *testing.T) {
	t.Parallel()
	pauses := []operator.Pause{{
		Scope: operator.TopicScope("orders"), Actor: "ada\x1b[2J", Reason: "moved\noperators have paused nothing\x07",
		Since: time.Unix(0, 0),
	}}
	want := "topic orders is paused by ada since 1970-01-01T00:00:00Z: moved operators have paused nothing\n"
	if got := list(pauses); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	_, _, stderr := call(t, nil, "\x1b[31mnonsense\x07")
	if strings.ContainsAny(stderr, "\x1b\x07") {
		t.Errorf("got %q", stderr)
	}
}

// TestPruneNamesItsFlags: also in an error that comes from retention as it is.
func TestPruneNamesItsFlags(t *testing.T) {
	t.Parallel()
	err := errors.New("count what would go: canceled; if the clock is right, set Confirmed to 2026-01-31T00:00:00Z")
	if got := (&pruneCommand{}).hint(err).Error(); got != err.Error()+"; that is --confirmed here" {
		t.Errorf("got %q", got)
	}
}
