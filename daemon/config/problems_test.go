package config_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/daemon/config"
)

// wrongInput is a configuration that is not taken, and the words that an operator gets.
type wrongInput struct {
	name    string
	args    []string
	environ []string
	yaml    string
	want    string
}

// wrongNames are keys, variables and flags that there are not.
var wrongNames = []wrongInput{
	{
		name: "unknown key", yaml: "relay:\n  bach: 5\n",
		want: `file F:2: "relay.bach" is not known; did you mean relay.batch?`,
	},
	{name: "unknown group", yaml: "rellay:\n  batch: 5\n", want: `file F:1: "rellay" is not known`},
	{name: "unknown and far", yaml: "zzzzzzz: 5\n", want: `file F:1: "zzzzzzz" is not known` + "\n"},
	{
		name: "unknown variable", environ: []string{"POSTHASTE_RELAY_BACTH=5"},
		want: "environment: POSTHASTE_RELAY_BACTH is not known; did you mean POSTHASTE_RELAY_BATCH?",
	},
	{
		name: "a port is not Kubernetes'", environ: []string{"POSTHASTE_HTTP_PORT=8080"},
		want: "environment: POSTHASTE_HTTP_PORT is not known",
	},
	{
		name: "unknown flag", args: []string{"--relay-bacth", "5"},
		want: "arguments: --relay-bacth is not known; did you mean --relay-batch?",
	},
	{name: "no flag", args: []string{"hunter2"}, want: "arguments: the argument 1 is not a flag"},
	{name: "flag without value", args: []string{"--relay-batch"}, want: "flag --relay-batch: the value is missing"},
	{
		name: "flag before flag", args: []string{"--relay-batch", "--log-successes"},
		want: "flag --relay-batch: the value is missing",
	},
	{
		name: "flag twice", args: []string{"--relay-batch=1", "--relay-batch=2"},
		want: "flag --relay-batch: relay.batch: is also given by flag --relay-batch",
	},
	{name: "config twice", args: []string{"--config=a", "--config=b"}, want: "flag --config: is given twice"},
	{
		name: "secret as flag", args: []string{"--database-url=postgres://u:hunter2@db"},
		want: "flag --database-url: database.url: a secret is not given as a flag",
	},
}

var tooLong = strings.Repeat("x", 64<<10+1)

// wrongValues are values that a key does not take.
var wrongValues = []wrongInput{
	{
		name: "two variables", environ: []string{"ACME_OUTBOX_PUBLISH_BATCH_SIZE=1", "POSTHASTE_RELAY_BATCH=2"},
		want: "relay.batch: is also given by environment ACME_OUTBOX_PUBLISH_BATCH_SIZE",
	},
	{
		name: "secret and file", environ: []string{"POSTHASTE_DATABASE_URL_FILE=/x"}, want: "environment " +
			"POSTHASTE_DATABASE_URL_FILE -> /x: database.url: is also given by environment POSTHASTE_DATABASE_URL",
	},
	{
		name: "secret file missing", environ: []string{"POSTHASTE_API_TOKEN_FILE=/nowhere/x"},
		want: "environment POSTHASTE_API_TOKEN_FILE -> /nowhere/x: api.token: stat /nowhere/x: no such file",
	},
	{
		name: "secret file is a folder", environ: []string{"POSTHASTE_API_TOKEN_FILE=/"},
		want: "api.token: /: not a regular file",
	},
	{
		name: "secret file is a device", environ: []string{"POSTHASTE_API_TOKEN_FILE=/dev/zero"},
		want: "api.token: /dev/zero: not a regular file",
	},
	{name: "secret file unnamed", environ: []string{"POSTHASTE_API_TOKEN_FILE="}, want: "api.token: must name a file"},
	{name: "secret empty", environ: []string{"POSTHASTE_API_TOKEN="}, want: "api.token: empty"},
	{
		name: "secret too long", environ: []string{"POSTHASTE_API_TOKEN=" + tooLong},
		want: "api.token: 65537 bytes, the limit is 65536",
	},
	{name: "text too long", environ: []string{"POSTHASTE_DATABASE_SCHEMA=" + tooLong}, want: "database.schema: \"xxx"},
	{
		name: "control character", yaml: `database: {schema: "a\nb"}`,
		want: `database.schema: "a\nb": holds a character that cannot be printed`,
	},
	{name: "invisible character", yaml: "database: {schema: \"a\u202eb\"}", want: "cannot be printed"},
	{
		name: "not UTF-8", environ: []string{"POSTHASTE_DATABASE_SCHEMA=\xff"},
		want: "database.schema: \"\\xff\": not valid UTF-8",
	},
	{
		name: "integer", environ: []string{"POSTHASTE_RELAY_BATCH=5.5"},
		want: `environment POSTHASTE_RELAY_BATCH: relay.batch: "5.5": must be a whole number`,
	},
	{name: "octal", yaml: "relay: {batch: 010}", want: "must be a whole number"},
	{
		name: "integer too large", environ: []string{"POSTHASTE_RELAY_BATCH=99999999999999999999"},
		want: "must be a whole number",
	},
	{name: "out of range", yaml: "relay: {batch: 0}", want: `file F:1: relay.batch: "0": must be between 1 and 10000`},
	{name: "empty integer", environ: []string{"POSTHASTE_RELAY_BATCH="}, want: "relay.batch: empty: leave it out"},
	{name: "duration without unit", environ: []string{"POSTHASTE_RELAY_POLL=500"}, want: "a unit is missing"},
	{name: "duration", environ: []string{"POSTHASTE_RELAY_POLL=5 minutes"}, want: "must be a duration"},
	{name: "size", environ: []string{"POSTHASTE_RELAY_MAX_BYTES=5 apples"}, want: "must be a number of bytes"},
	{name: "size below zero", environ: []string{"POSTHASTE_RELAY_MAX_BYTES=-5"}, want: "must be a number of bytes"},
	{name: "size too large", environ: []string{"POSTHASTE_RELAY_MAX_BYTES=99999999999GiB"}, want: "too large"},
	{name: "boolean", yaml: "log: {successes: yes}", want: `log.successes: "yes": must be true or false`},
	{
		name: "choice", environ: []string{"POSTHASTE_BROKER=natz"},
		want: `broker: "natz": must be one of nats, pubsub; did you mean nats?`,
	},
	{
		name: "list for one value", yaml: "relay:\n  batch: [1, 2]\n",
		want: "file F:2: relay.batch: must be of kind integer",
	},
	{
		name: "map for one value", yaml: "relay:\n  batch: {a: 1}\n", want: "file F:2: relay.batch: must be of kind integer",
	},
	{
		name: "map for a secret", yaml: "database:\n  url: {a: hunter2}\n",
		want: "file F:2: database.url: must be of kind secret",
	},
	{name: "value for a group", yaml: "relay: 5\n", want: "file F:1: relay: is a group of keys"},
	{name: "no value", yaml: "relay:\n  batch:\n", want: "file F:2: relay.batch: has no value"},
	{
		name: "nested list", yaml: "insecure:\n  allow:\n    - [a]\n",
		want: "file F:3: insecure.allow: each item must be a word",
	},
	{name: "comma in an item", yaml: "insecure:\n  allow: ['a,b']\n", want: "insecure.allow: item 1: holds a comma"},
	{
		name: "list too long", environ: []string{"POSTHASTE_INSECURE_ALLOW=" + strings.Repeat("a,", 1000) + "a"},
		want: "1001 items, the limit is 1000",
	},
	{name: "map without =", environ: []string{"POSTHASTE_MESSAGE_FORMATS=a"}, want: "item 1: must be name=value"},
	{
		name: "map name twice", environ: []string{"POSTHASTE_MESSAGE_FORMATS=a=b,a=c"},
		want: "item 2: must be name=value, and each name once",
	},
}

// wrongFiles are files that cannot be read, or that could be read in two ways.
var wrongFiles = []wrongInput{
	{
		name: "duplicate", yaml: "relay:\n  batch: 1\n  batch: 2\n",
		want: `file F:3: the key "batch" is there twice, first in line 2`,
	},
	{
		name: "duplicate by dots", yaml: "relay:\n  batch: 1\nrelay.batch: 2\n",
		want: "file F:3: relay.batch: is also given by file F:2",
	},
	{name: "alias", yaml: "a: &x 1\nb: *x\n", want: "file F:1: anchors and aliases are not taken"},
	{
		name: "alias bomb", yaml: "a: &a [x,x]\nb: &b [*a,*a,*a]\nc: &c [*b,*b,*b]\n",
		want: "file F:2: anchors and aliases are not taken",
	},
	{name: "unknown alias", yaml: "database:\n  url: *hunter2\n", want: "anchors and aliases are not taken"},
	{name: "merge", yaml: "relay: {<<: {batch: 1}}\n", want: "file F:1: merge keys (<<) are not taken"},
	{name: "tag", yaml: "relay:\n  batch: !!int 5\n", want: "file F:2: tags are not taken"},
	{name: "tab", yaml: "relay:\n\tbatch: 5\n", want: "file F:2: found character that cannot start any token"},
	{
		name: "documents", yaml: "relay: {batch: 5}\n---\nrelay: {batch: 6}\n",
		want: "file F:2: a second document begins here",
	},
	{name: "garbage behind", yaml: "relay: {batch: 5}\n---\n\t: [\n", want: "file F:3: "},
	{name: "a list", yaml: "- a\n", want: "file F:1: must be keys with values"},
	{name: "a word", yaml: "hunter2", want: "file F:1: must be keys with values"},
	{name: "a complex key", yaml: "? [a]\n: b\n", want: "file F:1: a key must be a word"},
	{name: "deep", yaml: strings.Repeat("[", 100) + strings.Repeat("]", 100), want: "nested deeper than 64 levels"},
	{name: "very deep", yaml: strings.Repeat("[", 500_000), want: "file F: exceeded max depth"},
	{name: "binary", yaml: "\x00\x01", want: "file F: control characters are not allowed"},
	{name: "too large", yaml: "# " + strings.Repeat("x", 1<<20), want: "more than 1048576 bytes"},
	{name: "no file", args: []string{"--config=/nowhere/a.yaml"}, want: "file: stat /nowhere/a.yaml: no such file"},
	{
		name: "together", yaml: "relay: {poll: 20s}",
		want: "file F:1: relay.poll: 20s, must be at most a third of relay.lease (30s)",
	},
}

// Everything that is refused, with the words that an operator gets.
func TestProblems(t *testing.T) {
	t.Parallel()
	for _, test := range slices.Concat(wrongNames, wrongValues, wrongFiles) {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			args := test.args
			name := ""
			if test.yaml != "" {
				name = file(t, "posthaste.yaml", test.yaml)
				args = append(args, "--config", name)
			}
			_, err := set().Load(args, append(test.environ, withURL))
			if _, invalid := errors.AsType[*config.Error](err); !invalid {
				t.Fatalf("got %v, want a refusal", err)
			}
			got := err.Error() + "\n"
			if name != "" {
				got = strings.ReplaceAll(got, name, "F")
			}
			if !strings.Contains(got, test.want) {
				t.Errorf("got %s\nwant %s", got, test.want)
			}
			if strings.Contains(got, "hunter2") {
				t.Errorf("a secret is told: %s", got)
			}
		})
	}
}
