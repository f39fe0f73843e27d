package deploy

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// herokuWaits is how long Heroku gives a process between SIGTERM and SIGKILL.
const herokuWaits = 30 * time.Second

// processes reads a Procfile as Heroku does: what does not look like a process is no line.
func processes(text string) map[string]string {
	found := map[string]string{}
	for _, line := range regexp.MustCompile(`(?m)^([A-Za-z0-9_-]+):\s*(.+)$`).FindAllStringSubmatch(text, -1) {
		found[line[1]] = line[2]
	}
	return found
}

func TestHerokuHasThePublisherAsAProcessOfItsOwn(t *testing.T) {
	t.Parallel()
	procfile := processes(read(t, "Procfile"))
	var manifest struct {
		Build struct {
			Docker map[string]struct{ Dockerfile, Target string }
		}
		Release struct {
			Image   string
			Command []string
		}
		Run map[string]struct {
			Image   string
			Command []string
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "heroku.yml")), &manifest); err != nil {
		t.Fatal(err)
	}
	if len(procfile) != 2 || len(manifest.Run) != 1 {
		t.Fatalf("the Procfile has %v, heroku.yml has %v", procfile, manifest.Run)
	}
	if err := enough(herokuWaits, defaultDrain(t)); err != nil {
		t.Error("Heroku", err)
	}
	// Both say the same, with the programs where each has them.
	inImage := strings.NewReplacer("deploy/heroku/start", "heroku-start", "bin/", "")
	if got, want := strings.Join(manifest.Run["publisher"].Command, ""),
		inImage.Replace(procfile["publisher"]); got != want {
		t.Errorf("heroku.yml runs %q, the Procfile %q", got, want)
	}
	if got, want := strings.Join(manifest.Release.Command, ""), inImage.Replace(procfile["release"]); got != want {
		t.Errorf("heroku.yml releases with %q, the Procfile with %q", got, want)
	}
	built := manifest.Build.Docker["publisher"]
	heroku, there := stages(read(t, built.Dockerfile))[built.Target]
	if !there || manifest.Run["publisher"].Image != "publisher" || manifest.Release.Image != "publisher" {
		t.Errorf("heroku.yml builds %v", manifest.Build.Docker)
	}
	if copied := strings.Join(heroku.of("COPY"), "\n"); !strings.Contains(copied,
		"deploy/heroku/start /usr/local/bin/heroku-start") {
		t.Errorf("the stage has no heroku-start:\n%s", copied)
	}
	if !strings.Contains(read(t, "go.mod"), "\n// +heroku install ./cmd/...\n") {
		t.Error("the buildpack is not told what to build")
	}
}

// slug is a folder as the buildpack leaves it.
func slug(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for from, to := range map[string]string{
		program(t, "outbox-publisher"): "bin/outbox-publisher", program(t, "outboxctl"): "bin/outboxctl",
		filepath.Join(root, "deploy/heroku/start"): "deploy/heroku/start",
	} {
		if err := copyFile(from, filepath.Join(folder, to)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(folder, "examples"), os.DirFS(filepath.Join(root, "examples"))); err != nil {
		t.Fatal(err)
	}
	return folder
}

// herokuRuns runs a line of the Procfile with these config vars.
func herokuRuns(t *testing.T, line string, vars ...string) (output string, code int) {
	t.Helper()
	return execute(t, slug(t), line, append([]string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir()}, vars...)...)
}

// execute runs a line of the shell in a folder, with this environment and no other.
func execute(t *testing.T, folder, line string, environment ...string) (output string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	run := exec.CommandContext(ctx, "sh", "-c", line)
	run.Dir, run.Env, run.WaitDelay = folder, environment, time.Second
	text, err := run.CombinedOutput()
	if exited := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exited) {
		t.Fatal(err)
	}
	return string(text), run.ProcessState.ExitCode()
}

func TestTheProcfileSetsWhatHerokuNeeds(t *testing.T) {
	t.Parallel()
	line := processes(read(t, "Procfile"))["publisher"] + " config show"
	vars := []string{
		"DATABASE_URL=postgres://user:c4nary@ec2-1-2-3-4.compute-1.amazonaws.com:5432/d1", "POSTHASTE_BROKER=pubsub",
		"POSTHASTE_PUBSUB_PROJECT=shop",
		`GOOGLE_CREDENTIALS={"type": "authorized_user", "client_id": "a", "client_secret": "b", "refresh_token": "c"}`,
		"POSTHASTE_REGISTRY_FILE=examples/registry.yaml",
	}
	text, code := herokuRuns(t, line, vars...)
	if code != 0 || strings.Contains(text, "c4nary") || !strings.Contains(text, "google-credentials.json") {
		t.Errorf("exit code %d\n%s", code, text)
	}
	for _, needed := range []string{"POSTHASTE_INSECURE_ALLOW=database ", "deploy/heroku/start "} {
		if text, code = herokuRuns(t, strings.Replace(line, needed, "", 1), vars...); code != 2 {
			t.Errorf("without %s: exit code %d\n%s", needed, code, text)
		}
	}
	// A broker without TLS is not allowed by what the database needs.
	if text, code = herokuRuns(t, line,
		append(vars, "POSTHASTE_BROKER=nats", "POSTHASTE_NATS_URL=nats://nats.example.com:4222")...); code != 2 {
		t.Errorf("NATS without TLS: exit code %d\n%s", code, text)
	}
}

// The release reaches the same database by the same rule. Nobody answers at this address.
func TestTheReleaseOnHerokuReachesItsDatabase(t *testing.T) {
	t.Parallel()
	line := processes(read(t, "Procfile"))["release"]
	const database = "DATABASE_URL=postgres://user:c4nary@255.255.255.255:5432/d1"
	if text, code := herokuRuns(t, line, database); code != 1 || !strings.Contains(text, "cannot connect") ||
		strings.Contains(text, "c4nary") {
		t.Errorf("exit code %d\n%s", code, text)
	}
	if text, code := herokuRuns(t, strings.Replace(line, "POSTHASTE_INSECURE_ALLOW=database ", "", 1),
		database); code != 2 {
		t.Errorf("without verified TLS: exit code %d\n%s", code, text)
	}
}

func TestTheStartOnHerokuKeepsSecretsInFiles(t *testing.T) {
	t.Parallel()
	show := `sh -c 'env; cat "$POSTHASTE_PUBSUB_CREDENTIALS_FILE" "$POSTHASTE_NATS_CREDENTIALS_FILE"; stat -c %a ` +
		`"$POSTHASTE_PUBSUB_CREDENTIALS_FILE" "$POSTHASTE_NATS_CREDENTIALS_FILE"'`
	text, code := herokuRuns(t, "deploy/heroku/start "+show, "DATABASE_URL=postgres://heroku", "GOOGLE_CREDENTIALS=g00gle",
		"NATS_CREDENTIALS=n4ts")
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, text)
	}
	for _, want := range []string{"POSTHASTE_DATABASE_URL=postgres://heroku\n", "g00gle", "n4ts\n600\n600\n"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("%q is not there once:\n%s", want, text)
		}
	}
	if strings.Contains(text, "GOOGLE_CREDENTIALS=") || strings.Contains(text, "NATS_CREDENTIALS=") {
		t.Errorf("the variables are still there:\n%s", text)
	}
	if text, code = herokuRuns(t, "deploy/heroku/start true"); code == 0 ||
		!strings.Contains(text, "add Heroku Postgres") {
		t.Errorf("without a database: exit code %d\n%s", code, text)
	}
}
