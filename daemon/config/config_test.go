package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/daemon/config"
)

// The keys of a small program with every kind.
var (
	databaseURL = config.Secret("database.url", config.Spec[config.Hidden]{
		Doc: "Where the outbox is.", Example: "postgres://app@db/shop", Required: true,
	})
	token  = config.Secret("api.token", config.Spec[config.Hidden]{Doc: "What the broker asks for."})
	schema = config.Text("database.schema", config.Spec[string]{Doc: "The schema.", Default: "public"})
	listen = config.Text("http.listen", config.Spec[string]{
		Doc: "Where it listens; empty is off.", Default: "127.0.0.1:8086",
	})
	caFile = config.Text("nats.ca_file", config.Spec[string]{Doc: "The authority."})
	poll   = config.Duration("relay.poll", config.Spec[time.Duration]{
		Doc: "The longest sleep.", Default: 500 * time.Millisecond, Check: config.Between(time.Millisecond, time.Minute),
	})
	lease    = config.Duration("relay.lease", config.Spec[time.Duration]{Doc: "The lease.", Default: 30 * time.Second})
	deadline = config.Duration("relay.publish_deadline", config.Spec[time.Duration]{
		Doc: "Of one publish.", Otherwise: "a third of relay.lease",
	})
	batch = config.Integer("relay.batch", config.Spec[int]{
		Doc: "Events of one read.", Default: 500, Example: "1000", Check: config.Between(1, 10_000),
	})
	maxBytes = config.Size("relay.max_bytes", config.Spec[int]{Doc: "Bytes in memory.", Default: 64 << 20})
	success  = config.Boolean("log.successes", config.Spec[bool]{Doc: "One line per event."})
	broker   = config.Choice("broker", []string{"nats", "pubsub"}, config.Spec[string]{
		Doc: "The broker | one of them.", Default: "nats",
	})
	insecure = config.List("insecure.allow", config.Spec[[]string]{Doc: "What may be without TLS."})
	formats  = config.Map("message.formats", config.Spec[map[string]string]{Doc: "The format by topic."})
)

func set() config.Set {
	return config.Set{
		Prefix: "POSTHASTE_",
		Keys: []config.AnyKey{
			databaseURL, schema, token, broker, listen, caFile, poll, lease, deadline, batch, maxBytes, success,
			insecure, formats,
		},
		Aliases: []config.Alias{
			{Variable: "ACME_OUTBOX_PUBLISH_BATCH_SIZE", Key: "relay.batch"},
			{Variable: "ACME_OUTBOX_PUBLISH_POLL_MS", Key: "relay.poll", Unit: time.Millisecond},
			{Variable: "ACME_DB_DSN", Key: "database.url"},
		},
		Ignored: []string{"POSTHASTE_TOOLS_DIR"},
		Check: func(v *config.Values) []config.Problem {
			if poll.Get(v) > lease.Get(v)/3 {
				return []config.Problem{
					v.Problem(poll, "%s, must be at most a third of relay.lease (%s)", poll.Get(v), lease.Get(v)),
				}
			}
			return nil
		},
	}
}

const withURL = "POSTHASTE_DATABASE_URL=postgres://app:hunter2@db:5432/shop?sslmode=verify-full"

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t *testing.T, args []string, environ ...string) *config.Values {
	t.Helper()
	values, err := set().Load(args, environ)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

func row(t *testing.T, values *config.Values, key config.AnyKey) config.Row {
	t.Helper()
	for _, row := range values.Rows() {
		if row.Name == key.Name() {
			return row
		}
	}
	t.Fatalf("%s is not shown", key.Name())
	return config.Row{}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	values := load(t, nil, withURL)
	if batch.Get(values) != 500 || poll.Get(values) != 500*time.Millisecond || listen.Get(values) != "127.0.0.1:8086" ||
		success.Get(values) ||
		broker.Get(values) != "nats" || maxBytes.Get(values) != 64<<20 || len(insecure.Get(values)) != 0 ||
		deadline.Get(values) != 0 {
		t.Errorf("the defaults are not the defaults:\n%s", values.Show())
	}
	if got := row(t, values, deadline); got.Value != "(a third of relay.lease)" || got.Source != "default" {
		t.Errorf("a default in words shows as %q from %q", got.Value, got.Source)
	}
	if databaseURL.Get(values).Reveal() != "postgres://app:hunter2@db:5432/shop?sslmode=verify-full" {
		t.Error("the secret is not the secret")
	}
}

// Each source beats those behind it, and the source is told.
func TestTheStrongestSourceWins(t *testing.T) {
	t.Parallel()
	name := file(t, "posthaste.yaml", "# a comment\nrelay:\n  batch: 3\n")
	all := []struct{ arg, env, want, source string }{
		{"--relay-batch=1", "POSTHASTE_RELAY_BATCH=2", "1", "flag --relay-batch"},
		{"", "POSTHASTE_RELAY_BATCH=2", "2", "environment POSTHASTE_RELAY_BATCH"},
		{"", "ACME_OUTBOX_PUBLISH_BATCH_SIZE=2", "2", "environment ACME_OUTBOX_PUBLISH_BATCH_SIZE"},
		{"", "OTHER=2", "3", "file " + name + ":3"},
	}
	for _, test := range all {
		args := []string{"--config", name}
		if test.arg != "" {
			args = append(args, test.arg)
		}
		if got := row(t, load(t, args, withURL, test.env), batch); got.Value != test.want || got.Source != test.source {
			t.Errorf("%+v: got %q from %q", test, got.Value, got.Source)
		}
	}
	if got := row(t, load(t, nil, withURL, "POSTHASTE_CONFIG="+name), batch); got.Value != "3" {
		t.Errorf("the file of POSTHASTE_CONFIG: got %+v", got)
	}
	if got := row(t, load(t, []string{"--config=" + name}, withURL, "POSTHASTE_CONFIG=/nowhere"), batch); got.Value !=
		"3" {
		t.Errorf("the file of the flag: got %+v", got)
	}
}

func TestEveryKindFromEverySource(t *testing.T) {
	t.Parallel()
	yaml := `
database: {schema: billing}
http.listen: ""
relay:
  poll: 1m
  lease: 1h30m
  max_bytes: 64KiB
log: {successes: true}
broker: pubsub
insecure:
  allow: [database, nats]
message:
  formats:
    orders: cloudevents
    billing: envelope
`
	for name, values := range map[string]*config.Values{
		"file": load(t, []string{"--config", file(t, "a.yaml", yaml)}, withURL),
		"environment": load(t, nil, withURL, "POSTHASTE_DATABASE_SCHEMA=billing", "POSTHASTE_HTTP_LISTEN=",
			"POSTHASTE_RELAY_POLL=60s", "POSTHASTE_RELAY_LEASE=90m",
			"POSTHASTE_RELAY_MAX_BYTES=65536", "POSTHASTE_LOG_SUCCESSES=true", "POSTHASTE_BROKER=pubsub",
			"POSTHASTE_INSECURE_ALLOW=database, nats",
			"POSTHASTE_MESSAGE_FORMATS=orders=cloudevents,billing=envelope"),
		"flags": load(t, []string{
			"--database-schema", "billing", "--http-listen=", "--relay-poll", "1m", "--relay-lease=1h30m", "--relay-max-bytes",
			"64KiB", "--log-successes",
			"--broker", "pubsub", "--insecure-allow=database,nats", "--message-formats=billing=envelope,orders=cloudevents",
		}, withURL),
	} {
		if schema.Get(values) != "billing" || listen.Get(values) != "" || poll.Get(values) != time.Minute ||
			lease.Get(values) != 90*time.Minute ||
			maxBytes.Get(values) != 65536 || !success.Get(values) || broker.Get(values) != "pubsub" ||
			!slices.Equal(insecure.Get(values), []string{"database", "nats"}) ||
			formats.Get(values)["orders"] != "cloudevents" || len(formats.Get(values)) != 2 {
			t.Errorf("%s:\n%s", name, values.Show())
		}
		for key, want := range map[config.AnyKey]string{
			poll: "1m", lease: "1h30m", maxBytes: "64KiB", insecure: "database,nats",
			formats: "billing=envelope,orders=cloudevents", success: "true",
		} {
			if got := row(t, values, key).Value; got != want {
				t.Errorf("%s: %s shows as %q, want %q", name, key.Name(), got, want)
			}
		}
	}
}

func TestAliasesHaveUnits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"250": 250 * time.Millisecond, "2s": 2 * time.Second} {
		if got := poll.Get(load(t, nil, withURL, "ACME_OUTBOX_PUBLISH_POLL_MS="+text)); got != want {
			t.Errorf("%s: got %s", text, got)
		}
	}
	same := load(t, nil, withURL, "ACME_OUTBOX_PUBLISH_POLL_MS=2000", "POSTHASTE_RELAY_POLL=2s")
	if got := row(t, same, poll); got.Value != "2s" || got.Source != "environment ACME_OUTBOX_PUBLISH_POLL_MS" {
		t.Errorf("two names with the same value: %+v", got)
	}
	if got := row(t, load(t, nil, "ACME_DB_DSN=postgres://u:hunter2@db/shop"), databaseURL); got.Value !=
		"postgres://***@db/shop" {
		t.Errorf("the alias of a secret shows as %q", got.Value)
	}
}

// H6: all errors at once, each with its source and line. What cannot be checked beside a broken value is not.
func TestAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	name := file(t, "posthaste.yaml", "relay:\n  batch: many\n  poll: 1h\nlog:\n  succes: true\n")
	_, err := set().Load([]string{"--borker=nats", "--config", name}, []string{
		"POSTHASTE_RELAY_LEASE=soon", "POSTHASTE_BROKR=nats",
	})
	want := strings.Join([]string{
		"the configuration is refused:",
		"  arguments: --borker is not known; did you mean --broker?",
		"  environment: POSTHASTE_BROKR is not known; did you mean POSTHASTE_BROKER?",
		"  file " + name + `:5: "log.succes" is not known; did you mean log.successes?`,
		"  file " + name + `:3: relay.poll: "1h": must be between 1ms and 1m0s`,
		`  environment POSTHASTE_RELAY_LEASE: relay.lease: "soon": must be a duration like 500ms, 30s, 5m, 12h or 1h30m`,
		"  file " + name + `:2: relay.batch: "many": must be a whole number`,
		"  database.url: is missing: set POSTHASTE_DATABASE_URL, POSTHASTE_DATABASE_URL_FILE, or database.url in the file",
	}, "\n")
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// A value that is wrong has left its default, and nobody wants to hear how that fits beside the others.
func TestABrokenValueIsNotComparedWithOthers(t *testing.T) {
	t.Parallel()
	_, err := set().Load(nil, []string{withURL, "POSTHASTE_RELAY_POLL=soon", "POSTHASTE_RELAY_LEASE=600ms"})
	invalid, _ := errors.AsType[*config.Error](err)
	if invalid == nil || len(invalid.Problems) != 1 || invalid.Problems[0].Key != "relay.poll" {
		t.Errorf("got %v", err)
	}
}

// Errors of the standard library quote what they could not read, whole or in part.
func TestAChecksQuotesAreTakenOut(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"bad port %q", "bad port '%s'", "bad port `%s`", "a quote that does not end \"%s"} {
		keys := []config.AnyKey{config.Secret("a", config.Spec[config.Hidden]{Doc: "x", Check: func(h config.Hidden) error {
			return fmt.Errorf("%s, all of it: "+format, h.Reveal(), strings.TrimPrefix(h.Reveal(), "nats://u:"))
		}})}
		_, err := config.Set{Prefix: "X_", Keys: keys}.Load(nil, []string{"X_A=nats://u:hunter2"})
		if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "a: ***, all of it: ") {
			t.Errorf("got %v", err)
		}
	}
}

func TestManyProblemsAreBounded(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 20_000 {
		text.WriteString(strings.Repeat("k", 1+i%40) + strings.Repeat("z", i/40) + ": 1\n")
		if text.Len() > 1<<20-2000 {
			break
		}
	}
	_, err := set().Load([]string{"--config", file(t, "a.yaml", text.String())}, []string{withURL})
	invalid, _ := errors.AsType[*config.Error](err)
	if invalid == nil || len(invalid.Problems) != 101 || invalid.Problems[100].Text != "and more" {
		t.Errorf("got %.1000v", err)
	}
}

func TestForeignVariablesAreLeftAlone(t *testing.T) {
	t.Parallel()
	load(t, nil, withURL, "PATH=/bin", "OTHER_RELAY_BATCH=x", "POSTHASTE_TOOLS_DIR=/x", "POSTHASTE_SERVICE_HOST=10.0.0.1",
		"POSTHASTE_SERVICE_PORT=80",
		"POSTHASTE_SERVICE_PORT_HTTP=80", "POSTHASTE_PORT=tcp://10.0.0.1:80", "POSTHASTE_PORT_80_TCP=tcp://10.0.0.1:80",
		"POSTHASTE_PORT_80_TCP_ADDR=10.0.0.1",
		"POSTHASTE_CONSOLE_SERVICE_HOST=10.0.0.1", "POSTHASTE_CONSOLE_PORT=tcp://10.0.0.2:80")
}

func TestSecretsFromFiles(t *testing.T) {
	t.Parallel()
	secret := file(t, "url", "postgres://app:hunter2@db/shop\r\n\n")
	yaml := file(t, "posthaste.yaml", "database:\n  url_file: "+secret+"\n")
	for source, values := range map[string]*config.Values{
		"environment POSTHASTE_DATABASE_URL_FILE -> " + secret: load(t, nil, "POSTHASTE_DATABASE_URL_FILE="+secret),
		"flag --database-url-file -> " + secret:                load(t, []string{"--database-url-file", secret}),
		"file " + yaml + ":2 -> " + secret:                     load(t, []string{"--config", yaml}),
	} {
		if got := databaseURL.Get(values).Reveal(); got != "postgres://app:hunter2@db/shop" {
			t.Errorf("%s: got %q", source, got)
		}
		if got := row(t, values, databaseURL); got.Source != source || got.Value != "postgres://***@db/shop" {
			t.Errorf("got %+v, want the source %q", got, source)
		}
	}
	// A flag is stronger than the environment, for secrets too.
	if got := row(t, load(t, []string{"--database-url-file", secret}, withURL),
		databaseURL); !strings.HasPrefix(got.Source, "flag") {
		t.Errorf("the source is %q", got.Source)
	}
}

func TestDefaultsOfTheProgram(t *testing.T) {
	t.Parallel()
	set := config.Set{Prefix: "P_", Keys: []config.AnyKey{batch}, Defaults: map[string]string{"relay.batch": "50"}}
	for environ, want := range map[string]config.Row{
		"":                {Name: "relay.batch", Value: "50", Source: "default of the program"},
		"P_RELAY_BATCH=7": {Name: "relay.batch", Value: "7", Source: "environment P_RELAY_BATCH"},
	} {
		values, err := set.Load(nil, []string{environ})
		if err != nil {
			t.Fatal(err)
		}
		if got := row(t, values, batch); got != want {
			t.Errorf("got %+v", got)
		}
	}
	if !strings.Contains(set.Markdown(), "| `relay.batch` | integer | `50` |") {
		t.Errorf("the page does not have it:\n%s", set.Markdown())
	}
}

func TestWhatChanged(t *testing.T) {
	t.Parallel()
	secret := file(t, "url", "postgres://app:one@db/shop")
	yaml := file(t, "posthaste.yaml", "relay: {batch: 1, lease: 10s}\n")
	environ := []string{"POSTHASTE_DATABASE_URL_FILE=" + secret, "POSTHASTE_RELAY_LEASE=20s"}
	first := load(t, []string{"--config", yaml}, environ...)
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rotated, others := first.Changes(load(t, []string{"--config", yaml}, environ...))
	if len(rotated) != 0 || len(others) != 0 {
		t.Errorf("nothing changed, and %v and %v did", rotated, others)
	}
	write(secret, "postgres://app:two@db/shop\n")
	write(yaml, "# moved\nrelay: {batch: 2, lease: 11s}\n")
	rotated, others = first.Changes(load(t, []string{"--config", yaml}, environ...))
	if !slices.Equal(rotated, []string{"database.url"}) || !slices.Equal(others, []string{"relay.batch"}) {
		t.Errorf("rotated %v, others %v", rotated, others)
	}
	if _, others = first.Changes(load(t, nil, "POSTHASTE_DATABASE_URL=postgres://app:two@db/shop")); !slices.Contains(
		others, "database.url") {
		t.Errorf("a secret that is no longer in its file is not told: %v", others)
	}
}

func TestASecretIsReadAgain(t *testing.T) {
	t.Parallel()
	secret := file(t, "url", "postgres://app:one@db/shop\n")
	values := load(t, nil, "POSTHASTE_DATABASE_URL_FILE="+secret)
	if err := os.WriteFile(secret, []byte("postgres://app:two@db/shop\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	current, err := values.Current(databaseURL)
	if err != nil || current.Reveal() != "postgres://app:two@db/shop" ||
		databaseURL.Get(values).Reveal() != "postgres://app:one@db/shop" {
		t.Errorf("got %v, %v", current, err)
	}
	if err := os.WriteFile(secret, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := values.Current(databaseURL); err == nil || !strings.Contains(err.Error(), "database.url") ||
			strings.Contains(err.Error(), "app:") {
			t.Errorf("an empty or missing file: %v", err)
		}
		_ = os.Remove(secret)
	}
	if current, err := load(t, nil, withURL).Current(databaseURL); err != nil || current.Reveal() == "" {
		t.Errorf("without a file: %v, %v", current, err)
	}
}

func TestShow(t *testing.T) {
	t.Parallel()
	values := load(t, []string{"--relay-batch", "7"}, withURL, "POSTHASTE_API_TOKEN=s3cr3t")
	lines := strings.Split(values.Show(), "\n")
	for i, want := range [][]string{
		{"database.url", "postgres://***@db:5432/shop?***", "environment", "POSTHASTE_DATABASE_URL"},
		{"database.schema", "public", "default"},
		{"api.token", "***", "environment", "POSTHASTE_API_TOKEN"},
	} {
		if got := strings.Fields(lines[i]); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if !values.IsSet(batch) || values.IsSet(schema) || values.Source(batch) != "flag --relay-batch" {
		t.Error("what is set is not told")
	}
}

// A set that is wrong is the program's mistake, found by its first test.
func TestMistakesOfTheProgram(t *testing.T) {
	t.Parallel()
	text := func(name string) config.AnyKey { return config.Text(name, config.Spec[string]{Doc: "x"}) }
	for want, wrong := range map[string]config.Set{
		"have the same variable": {Keys: []config.AnyKey{text("a.b_c"), text("a_b.c")}},
		"and x_file have the same": {
			Keys: []config.AnyKey{config.Secret("x", config.Spec[config.Hidden]{Doc: "x"}), text("x_file")},
		},
		"config and config have": {Keys: []config.AnyKey{text("config")}},
		"is not a name":          {Keys: []config.AnyKey{text("A-b")}},
		"has no documentation":   {Keys: []config.AnyKey{config.Text("a", config.Spec[string]{})}},
		"the example of a":       {Keys: []config.AnyKey{config.Integer("a", config.Spec[int]{Doc: "x", Example: "many"})}},
		"the default of a": {
			Keys: []config.AnyKey{config.Integer("a", config.Spec[int]{Doc: "x", Default: 5, Check: config.Between(1, 2)})},
		},
		"there is a default for y": {Defaults: map[string]string{"y": "1"}},
		"which is no key":          {Aliases: []config.Alias{{Variable: "X", Key: "y"}}},
		"or has no unit": {
			Keys: []config.AnyKey{text("a")}, Aliases: []config.Alias{{Variable: "X", Key: "a", Unit: time.Second}},
		},
		"the alias P_A is there twic": {
			Prefix: "P_", Keys: []config.AnyKey{text("a")}, Aliases: []config.Alias{{Variable: "P_A", Key: "a"}},
		},
	} {
		if _, err := wrong.Load(nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a key of another set has a value")
		}
	}()
	config.Text("other", config.Spec[string]{Doc: "x"}).Get(load(t, nil, withURL))
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	page := set().Markdown()
	for _, want := range []string{
		"`POSTHASTE_CONFIG`", "\n## relay\n",
		"| `relay.batch` | integer | `500` | Events of one read. For instance `1000`. |",
		"| `relay.publish_deadline` | duration | a third of relay.lease |", "| `database.url` | secret | required |",
		"| `broker` | `nats`, `pubsub` | `nats` | The broker \\| one of them. |", "| `nats.ca_file` | text | none |",
		"| `ACME_OUTBOX_PUBLISH_POLL_MS` | `relay.poll`, a bare number in units of 1ms |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q:\n%s", want, page)
		}
	}
}
