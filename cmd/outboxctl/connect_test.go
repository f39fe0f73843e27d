package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// secretFile writes a file with a mode, whatever the umask is.
func secretFile(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "database-url")
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, mode); err != nil {
		t.Fatal(err)
	}
	return file
}

// The rule is the publisher's: nothing goes over a network in plain text unless somebody says so.
func TestAnotherMachineNeedsTLS(t *testing.T) {
	t.Parallel()
	const url = "postgres://app:s3cr3t@255.255.255.255/shop"
	const needsTLS = "255.255.255.255 is not on this machine: add sslmode=verify-full"
	for _, line := range []string{
		"migrate up", "migrate status", "migrate down --target 1", "grant relay app", "pauses", "prune",
		"pause --all --reason x --actor ada", "emit a --aggregate order/1", "dev",
		"status", "top --count 1", "problems", "lanes", "relays", "topics", "grants --check",
		"skip 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e --actor ada --reason x", "events list", "events tail", "dead list",
	} {
		for _, mode := range []string{"", "?sslmode=disable", "?sslmode=prefer", "?sslmode=require", "?sslmode=verify-ca"} {
			code, _, stderr := call(t, map[string]string{"DATABASE_URL": url + mode}, strings.Fields(line)...)
			if code != exitUsage || !strings.Contains(stderr, needsTLS) || strings.Contains(stderr, "s3cr3t") ||
				!strings.Contains(stderr, "--insecure-allow database") {
				t.Errorf("%s, %s: exit code %d\n%s", line, mode, code, stderr)
			}
		}
	}
	// It goes on to the network, where nobody can be reached at this address.
	for name, c := range map[string]struct {
		environment map[string]string
		args        []string
	}{
		"verified":         {map[string]string{"DATABASE_URL": url + "?sslmode=verify-full"}, nil},
		"a flag":           {map[string]string{"DATABASE_URL": url}, []string{"--insecure-allow", "database"}},
		"the publisher's":  {map[string]string{"DATABASE_URL": url, "POSTHASTE_INSECURE_ALLOW": "nats, database"}, nil},
		"from the command": {nil, []string{"--insecure-allow=database", "--database-url", url}},
	} {
		code, _, stderr := call(t, c.environment, append([]string{"pauses"}, c.args...)...)
		if code != exitFailed || !strings.Contains(stderr, "cannot connect to the database") {
			t.Errorf("%s: exit code %d\n%s", name, code, stderr)
		}
	}
	if code, _, stderr := call(t, map[string]string{"DATABASE_URL": url, "POSTHASTE_INSECURE_ALLOW": "nats"},
		"pauses"); code != exitUsage {
		t.Errorf("allowed for something else: exit code %d\n%s", code, stderr)
	}
}

// TestTheSameOutbox: the flags that are printed for another command lead to the same place, and have no password.
func TestTheSameOutbox(t *testing.T) {
	t.Parallel()
	file := secretFile(t, "postgres://app:s3cr3t@255.255.255.255/shop", 0o600)
	for want, c := range map[string]rootCommand{
		` --database-url 'postgres://app@255.255.255.255/shop?sslmode=disable' --insecure-allow database`: {
			databaseURL: "postgres://app:s3cr3t@255.255.255.255/shop?sslmode=disable&password=s3cr3t", schema: "public",
		},
		` --schema 'my outbox' --database-url 'host=255.255.255.255 user=app dbname=shop' --insecure-allow database`: {
			databaseURL: `host=255.255.255.255 user=app password='s3cr3t \'s3cr3t' dbname=shop`, schema: "my outbox",
		},
		" --database-url-file " + file + " --insecure-allow database": {databaseURLFile: file, schema: "public"},
	} {
		c.insecureAllow = []string{"database"}
		flags := c.sameOutbox()
		if flags != want {
			t.Errorf("got  %s\nwant %s", flags, want)
		}
		words, err := exec.CommandContext(t.Context(), "bash", "-c", "printf '%s\n' emit a --aggregate a/1"+flags).Output()
		if err != nil {
			t.Fatal(err)
		}
		// Nobody can be reached at this address: it goes on until then.
		code, _, stderr := call(t, nil, strings.Split(strings.TrimSpace(string(words)), "\n")...)
		if code != exitFailed || !strings.Contains(stderr, "cannot connect to the database") {
			t.Errorf("%s: exit code %d\n%s", flags, code, stderr)
		}
	}
}

// The URL can be in a file, as the publisher's can, and one that everybody reads is told.
func TestTheURLFromAFile(t *testing.T) {
	t.Parallel()
	const nobody = "postgres://app:s3cr3t@127.0.0.1:1/db\n"
	file, open := secretFile(t, nobody, 0o600), secretFile(t, nobody, 0o644)
	empty, word := secretFile(t, "\n", 0o600), secretFile(t, "s3cr3t", 0o600)
	const noAnswer, warning = "cannot connect to the database; is it up", "every user of this machine can read"
	for name, c := range map[string]struct {
		environment map[string]string
		args        []string
		code        int
		says        string
	}{
		"a variable": {
			map[string]string{"POSTHASTE_DATABASE_URL_FILE": file, "DATABASE_URL": "x"}, nil, exitFailed, noAnswer,
		},
		"a flag": {
			map[string]string{"POSTHASTE_DATABASE_URL": "x"}, []string{"--database-url-file", file}, exitFailed, noAnswer,
		},
		"for everybody": {
			map[string]string{"POSTHASTE_DATABASE_URL_FILE": open}, nil, exitFailed, warning + " " + open,
		},
		"a password for everybody": {
			map[string]string{"DATABASE_URL": "host=127.0.0.1 port=1", "POSTHASTE_DATABASE_PASSWORD_FILE": open},
			nil,
			exitFailed, warning,
		},
		"two": {
			map[string]string{"POSTHASTE_DATABASE_URL_FILE": file, "POSTHASTE_DATABASE_URL": nobody},
			nil, exitUsage,
			"are both set",
		},
		"two flags": {nil, []string{"--database-url-file", file, "--database-url", nobody}, exitUsage, "give one of them"},
		"no file":   {map[string]string{"POSTHASTE_DATABASE_URL_FILE": "/no/file"}, nil, exitUsage, "/no/file"},
		"empty":     {map[string]string{"POSTHASTE_DATABASE_URL_FILE": empty}, nil, exitUsage, "is empty"},
		"no URL": {
			map[string]string{"POSTHASTE_DATABASE_URL_FILE": word}, nil, exitUsage, "the database URL cannot be read",
		},
	} {
		code, stdout, stderr := call(t, c.environment, append([]string{"pauses"}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.says) || strings.Contains(stdout+stderr, "s3cr3t") {
			t.Errorf("%s: exit code %d, want %d and %q\n%s%s", name, code, c.code, c.says, stdout, stderr)
		}
		if strings.Contains(stderr, warning) != strings.HasPrefix(c.says, warning) {
			t.Errorf("%s: %s", name, stderr)
		}
	}
}

// A database that does not answer is told first, and not what could not be done there.
func TestNoAnswerOfTheDatabase(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"migrate up", "migrate status", "migrate down --target 1", "grant relay app", "pauses", "prune", "dev",
		"emit a --aggregate order/1",
		"dead redrive 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e --actor ada --reason x",
	} {
		environment := map[string]string{"DATABASE_URL": "postgres://app@127.0.0.1:1/db"}
		code, _, stderr := call(t, environment, strings.Fields(line)...)
		if code != exitFailed || !strings.HasPrefix(stderr, "outboxctl: cannot connect to the database; is it up, and") ||
			strings.Contains(stderr, "version table") {
			t.Errorf("%s: exit code %d\n%s", line, code, stderr)
		}
	}
}

// Each verb's example is its own.
func TestExamplesAreOfTheirVerb(t *testing.T) {
	t.Parallel()
	for verb, reason := range map[string]string{
		"dead redrive": "the topic takes them now", "skip": "what comes after it does not need it",
		"dead discard": "orders of a test, nobody waits for them", "release": "the relays know the type now",
	} {
		if _, help, _ := call(t, nil, append(strings.Fields(verb), "--help")...); strings.Count(help, `--reason "`) !=
			strings.Count(help, `--reason "`+reason+`"`) || !strings.Contains(help, `--reason "`+reason+`"`) {
			t.Errorf("%s:\n%s", verb, help)
		}
	}
}
