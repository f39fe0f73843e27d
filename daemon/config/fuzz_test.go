package config_test

import (
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/daemon/config"
)

const canary = "CaNaRy7f3aQx"

// quotes is a check that does what it must not: its error has the value in it.
var quotes = config.Secret("nats.url", config.Spec[config.Hidden]{Doc: "x", Check: func(h config.Hidden) error {
	_, err := url.Parse(h.Reveal())
	return err
}})

func fuzzSet() config.Set {
	s := set()
	s.Keys = append(s.Keys, quotes)
	return s
}

// secrets are the forms that a secret comes in, with what chance may put around it. The canary is always in a
// place where a secret can be.
func secrets(before, after string) []string {
	return []string{
		"postgres://app:" + before + canary + after + "@db:5432/shop?x=" + after,
		"postgres://" + before + canary + after + "@db",
		"nats://db?token=" + before + canary + after,
		"host=db password=" + before + canary + after,
		before + "\n" + canary + after,
	}
}

// checkAccepted holds an accepted configuration to what [config] promises. What is shown is given again, as
// environment, and must mean the same.
func checkAccepted(t *testing.T, values *config.Values) {
	t.Helper()
	shown := values.Show()
	if strings.Contains(shown, canary) {
		t.Errorf("a secret is shown: %s", shown)
	}
	var environ []string
	for _, row := range values.Rows() {
		variable := "POSTHASTE_" + strings.ToUpper(strings.ReplaceAll(row.Name, ".", "_"))
		switch {
		case row.Name == databaseURL.Name():
			environ = append(environ, variable+"="+databaseURL.Get(values).Reveal())
		case row.Name == token.Name() || row.Name == quotes.Name() || row.Source == "default":
		default:
			environ = append(environ, variable+"="+row.Value)
		}
	}
	again, err := fuzzSet().Load(nil, environ)
	if err != nil {
		t.Fatalf("what was shown is refused: %v\n%s", err, shown)
	}
	for _, same := range []bool{
		schema.Get(values) == schema.Get(again), listen.Get(values) == listen.Get(again),
		caFile.Get(values) == caFile.Get(again), poll.Get(values) == poll.Get(again),
		lease.Get(values) == lease.Get(again), deadline.Get(values) == deadline.Get(again),
		batch.Get(values) == batch.Get(again),
		maxBytes.Get(values) == maxBytes.Get(again), success.Get(values) == success.Get(again),
		broker.Get(values) == broker.Get(again),
		reflect.DeepEqual(insecure.Get(values), insecure.Get(again)),
		reflect.DeepEqual(formats.Get(values), formats.Get(again)),
	} {
		if !same {
			t.Errorf("it changed on the way:\n%s\n%s", shown, again.Show())
		}
	}
}

// FuzzConfigParse: whatever the file, the environment and the flags hold, nothing panics, an accepted
// configuration is what it shows, and a secret is never told.
func FuzzConfigParse(f *testing.F) {
	for _, seed := range []string{
		"", "relay:\n  batch: 5\n", "relay: {batch: 1, poll: 1s, lease: 1h30m, max_bytes: 64KiB}\nbroker: pubsub\n",
		"insecure: {allow: [database, nats]}\nmessage: {formats: {a: b}}\nhttp: {listen: ''}\n",
		"database: {url_file: /dev/zero}\n", "api: {token: x}\n",
		"a: &a [x]\nb: *a\n", "relay:\n\tbatch: 5\n", "a: 1\na: 2\n", "---\n---\n", "? [a]\n: b\n", "!!binary x",
		"relay: {<<: {batch: 1}}", "[[[[[[[[", "\x00", "\xff\xfe",
		"relay: {batch: 010}", "log: {successes: yes}", "http: {listen: \"a\\nb\"}", "insecure: {allow: ['a,b', ' c']}",
		"message: {formats: {'a=b': c}}", "relay.batch: 1\nrelay: {batch: 2}",
		"database: {schema: |\n  x\n}", "database:\n  url: *" + canary + "\n", "relay: {max_bytes: 9223372036854775807}",
		"relay: {lease: 2562047h47m16.854775807s}",
	} {
		f.Add(seed, "", "", uint8(0))
		f.Add(seed, "@", "/", uint8(1))
	}
	f.Add("", `"`, "'", uint8(2))
	f.Add("", "%zz", "@h,x://", uint8(0))
	f.Fuzz(func(t *testing.T, yaml, before, after string, form uint8) {
		if strings.Contains(before+after, "CaNaRy") || strings.Contains(before+after, "\x00") {
			t.Skip("an environment has no such text")
		}
		if strings.Contains(yaml, canary) && !strings.Contains(yaml, "*"+canary) {
			t.Skip("the file tells it where it is no secret")
		}
		name := filepath.Join(t.TempDir(), "posthaste.yaml")
		if err := os.WriteFile(name, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		all := secrets(before, after)
		secret := all[int(form)%len(all)]
		for _, environ := range [][]string{
			{"POSTHASTE_DATABASE_URL=" + secret, "POSTHASTE_CONFIG=" + name},
			{
				"POSTHASTE_DATABASE_URL=" + secret, "POSTHASTE_NATS_URL=" + secret, "POSTHASTE_DATABASE_SCHEMA=" + before,
				"POSTHASTE_INSECURE_ALLOW=" + after, "POSTHASTE_CONFIG=" + name,
			},
		} {
			values, err := fuzzSet().Load([]string{"--message-formats", before}, environ)
			if _, other := fuzzSet().Load([]string{"--database-url=" + secret, secret}, nil); strings.Contains(other.Error(),
				canary) {
				t.Errorf("an error tells a secret: %v", other)
			}
			if err != nil && strings.Contains(err.Error(), canary) {
				t.Errorf("an error tells a secret: %v", err)
			}
			if err == nil {
				checkAccepted(t, values)
			}
		}
	})
}
