package deploy

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/examples/marketplace/settings"
	"github.com/posthaste-dev/posthaste/test/proof/publisher"
)

const marketplace = "examples/marketplace"

// application is the marketplace as `make app` writes it and the Dockerfile builds it, once, in a folder from which no
// path leads back to the repository: its programs are in out, as in the image.
var application = sync.OnceValues(func() (folder string, err error) {
	written, folder := filepath.Join(scratch, "written"),
		filepath.Join(scratch, "far", "away", "from", "the", "repository", "app")
	write := exec.Command("./standalone", written)
	write.Dir = filepath.Join(root, marketplace)
	if said, err := write.CombinedOutput(); err != nil {
		return "", fmt.Errorf("./standalone: %w\n%s", err, said)
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return "", err
	}
	if err := os.Rename(written, folder); err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(folder, "Dockerfile"))
	if err != nil {
		return "", err
	}
	for _, line := range stages(string(text))["build"].of("RUN") {
		run := exec.Command("sh", "-c", strings.ReplaceAll(line, "/out/", "bin/"))
		run.Dir, run.Env = folder, append(os.Environ(), "VERSION="+version, "GOFLAGS=", "GOPROXY=off")
		if said, err := run.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w\n%s", line, err, said)
		}
	}
	return folder, nil
})

// theApplication is its folder, with the programs in bin.
func theApplication(t *testing.T) string {
	t.Helper()
	folder, err := application()
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// deployed are the programs that are for a deployment. The others are for trying it out.
var deployed = []string{"api", "example-event", "outbox-publisher", "setup", "worker"}

// The Dockerfile builds and copies each of them, they are commands of the example, and the image can run them.
func TestTheMarketplacesImage(t *testing.T) {
	t.Parallel()
	all := stages(read(t, marketplace+"/Dockerfile"))
	build, image := strings.Join(all["build"].of("RUN"), "\n"), all["marketplace"]
	var commands, copied []string
	for _, match := range regexp.MustCompile(`\./cmd/([a-z-]+)`).FindAllStringSubmatch(build, -1) {
		commands = append(commands, match[1])
	}
	for _, match := range regexp.MustCompile(`/out/([a-z-]+)`).FindAllStringSubmatch(strings.Join(image.of("COPY"), "\n"),
		-1) {
		copied = append(copied, match[1])
	}
	if !slices.Equal(commands, deployed) || !slices.Equal(copied, deployed) {
		t.Errorf("it builds %v and copies %v, want %v", commands, copied, deployed)
	}
	for name, s := range all {
		if !pinned.MatchString(s.from) {
			t.Errorf("%s begins with %s, which is no fixed version", name, s.from)
		}
	}
	if root := stages(read(t, "Dockerfile")); all["build"].from != root["build"].from ||
		image.from != root["heroku"].from {
		t.Errorf("it begins with %s and %s, the stock image with %s and %s", all["build"].from, image.from,
			root["build"].from, root["heroku"].from)
	}
	if user := strings.Join(image.of("USER"), ""); !regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`).MatchString(user) {
		t.Errorf("it runs as %q", user)
	}
	if got := image.environment()["POSTHASTE_HTTP_LISTEN"]; got != ":"+defaultPort(t) {
		t.Errorf("the publisher listens at %q", got)
	}
	for _, name := range deployed {
		if text := read(t, marketplace+"/cmd/"+name+"/main.go"); !strings.Contains(text, "\npackage main\n") {
			t.Errorf("cmd/%s is no command", name)
		}
		file, err := elf.Open(filepath.Join(theApplication(t), "bin", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := static(file.Progs); err != nil {
			t.Errorf("%s %v", name, err)
		}
		_ = file.Close()
	}
	output, err := exec.CommandContext(t.Context(), filepath.Join(theApplication(t), "bin", "outbox-publisher"),
		"version").CombinedOutput()
	if err != nil || strings.TrimSpace(string(output)) != "outbox-publisher "+version {
		t.Errorf("%v: %s", err, output)
	}
}

// The processes in both forms of Heroku: the same names, the same commands, programs that are there.
func TestTheMarketplaceOnHeroku(t *testing.T) {
	t.Parallel()
	procfile := processes(read(t, marketplace+"/Procfile"))
	var manifest struct {
		Build   struct{ Docker map[string]string }
		Release struct {
			Image   string
			Command []string
		}
		Run map[string]struct {
			Image   string
			Command []string
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, marketplace+"/heroku.yml")), &manifest); err != nil {
		t.Fatal(err)
	}
	inImage := strings.NewReplacer("./heroku-start", "heroku-start", "bin/", "")
	same := map[string]string{"release": strings.Join(manifest.Release.Command, "")}
	images := []string{manifest.Release.Image}
	for name, run := range manifest.Run {
		same[name], images = strings.Join(run.Command, ""), append(images, run.Image)
	}
	if len(procfile) != 4 || len(same) != 4 {
		t.Errorf("the Procfile has %v, heroku.yml has %v", procfile, same)
	}
	for name, line := range procfile {
		if same[name] != inImage.Replace(line) {
			t.Errorf("%s: heroku.yml runs %q, the Procfile %q", name, same[name], line)
		}
		program := filepath.Base(line[strings.LastIndex(line, " ")+1:])
		if !slices.Contains(deployed, program) || name != "release" && name != program {
			t.Errorf("the process %s runs %s", name, program)
		}
	}
	if web := procfile["web"]; web != "" {
		t.Errorf("the world can reach %q, which asks nobody who they are", web)
	}
	for _, image := range images {
		if manifest.Build.Docker[image] != "Dockerfile" {
			t.Errorf("a process runs the image %q, heroku.yml builds %v", image, manifest.Build.Docker)
		}
	}
	if copied := strings.Join(stages(read(t, marketplace+"/Dockerfile"))["marketplace"].of("COPY"),
		"\n"); !strings.Contains(copied, "heroku-start /usr/local/bin/") {
		t.Errorf("the image has no heroku-start:\n%s", copied)
	}
	if !strings.Contains(read(t, marketplace+"/go.mod"), "\n// +heroku install ./cmd/...\n") {
		t.Error("the buildpack is not told what to build")
	}
	if err := enough(herokuWaits, defaultDrain(t)); err != nil {
		t.Error("Heroku", err)
	}
}

// Each line of the Procfile works with what Heroku gives it, and none reaches a database that nobody has verified
// unless it is allowed: the same variable allows it to every program.
func TestTheMarketplacesProcfileAllowsWhatHerokuNeeds(t *testing.T) {
	t.Parallel()
	const allowance = "POSTHASTE_INSECURE_ALLOW=database "
	more := map[string]string{ // ends a program, when its settings were taken and before it has done anything
		"release": "", "outbox-publisher": " config show", "worker": " --worker-listen=nowhere",
		"api": " --api-listen=nowhere",
	}
	for name, line := range processes(read(t, marketplace+"/Procfile")) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vars := []string{
				"PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir(), "POSTHASTE_PUBSUB_PROJECT=shop",
				"DATABASE_URL=postgres://user:c4nary@db.invalid:5432/d1?connect_timeout=5",
				`GOOGLE_CREDENTIALS={"type": "authorized_user", "client_id": "a", "client_secret": "s3cret", "refresh_token": "c"}`,
			}
			text, code := execute(t, theApplication(t), line+more[name], vars...)
			if code == 2 || name == "outbox-publisher" && code != 0 || strings.Contains(text, "is not on this machine") {
				t.Errorf("exit code %d\n%s", code, text)
			}
			if strings.Contains(text, "c4nary") || strings.Contains(text, "s3cret") {
				t.Errorf("it shows a secret:\n%s", text)
			}
			text, code = execute(t, theApplication(t), strings.Replace(line, allowance, "", 1)+more[name], vars...)
			if code != 2 || !strings.Contains(text, "db.invalid is not on this machine") {
				t.Errorf("without %s: exit code %d\n%s", allowance, code, text)
			}
			text, code = execute(t, theApplication(t), strings.Replace(line, "=database ", "=databse ", 1)+more[name], vars...)
			if code != 2 || !strings.Contains(text, `"databse": must be some of`) {
				t.Errorf("with a name that stands for nothing: exit code %d\n%s", code, text)
			}
		})
	}
}

// A broker on another machine is refused in plain text by every program, and taken by all of them where it is allowed.
func TestTheMarketplacesProgramsAgreeOnBrokers(t *testing.T) {
	t.Parallel()
	vars := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "POSTHASTE_BROKER=nats",
		"POSTHASTE_NATS_URL=nats://nats.invalid:4222",
		"POSTHASTE_DATABASE_URL=postgres://nobody@127.0.0.1:1/none?connect_timeout=5",
	}
	for _, line := range []string{
		"bin/outbox-publisher config show", "bin/worker --worker-listen=nowhere", "bin/example-event",
	} {
		text, code := execute(t, theApplication(t), line, vars...)
		if code != 2 || !strings.Contains(text, "nats.invalid is not on this machine") {
			t.Errorf("%s: exit code %d\n%s", line, code, text)
		}
		text, _ = execute(t, theApplication(t), line, append(vars, "POSTHASTE_INSECURE_ALLOW=nats")...)
		if strings.Contains(text, "is not on this machine") {
			t.Errorf("%s: it is refused though it is allowed\n%s", line, text)
		}
	}
}

var variableRow = regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\| (.+?) \\| ")

// The page has every variable that is the marketplace's own, no others than the programs read, and their defaults.
func TestTheMarketplacesPageHasItsVariables(t *testing.T) {
	t.Parallel()
	documented, err := exec.CommandContext(t.Context(), filepath.Join(theApplication(t), "bin", "outbox-publisher"),
		"config", "docs").Output()
	if err != nil {
		t.Fatal(err)
	}
	defaults := map[string]string{} // by variable
	byKey := map[string]string{}
	for _, row := range keyPattern.FindAllStringSubmatch(string(documented), -1) {
		byKey[row[1]] = row[3]
		defaults["POSTHASTE_"+strings.ToUpper(strings.ReplaceAll(row[1], ".", "_"))] = row[3]
	}
	values, err := settings.Load(nil, []string{"POSTHASTE_DATABASE_URL=postgres://127.0.0.1/shop"})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, row := range values.Rows() {
		if slices.ContainsFunc(settings.ApplicationKeys, func(k config.AnyKey) bool { return k.Name() == row.Name }) {
			variable := "MARKETPLACE_" + strings.ToUpper(strings.ReplaceAll(row.Name, ".", "_"))
			defaults[variable], want = "`"+row.Value+"`", append(want, variable)
		}
	}
	for _, alias := range settings.Aliases {
		text := strings.Trim(byKey[alias.Key], "`")
		if alias.Unit > 0 {
			text = fmt.Sprint(int64(duration(t, text) / alias.Unit))
		}
		defaults[alias.Variable], want = "`"+text+"`", append(want, alias.Variable)
	}
	for _, key := range settings.Keys {
		if !slices.ContainsFunc(settings.Aliases, func(a config.Alias) bool { return a.Key == key.Name() }) {
			want = append(want, "POSTHASTE_"+strings.ToUpper(strings.ReplaceAll(key.Name(), ".", "_")))
		}
	}
	var listed []string
	for _, row := range variableRow.FindAllStringSubmatch(read(t, marketplace+"/README.md"), -1) {
		listed = append(listed, row[1])
		otherwise, read := defaults[row[1]]
		code := strings.HasPrefix(otherwise, "`") && otherwise != "`database.url`" && otherwise != "``" &&
			!strings.HasPrefix(otherwise, "`(")
		switch {
		case !read:
			t.Errorf("the page has %s, which no program reads", row[1])
		case code && row[2] != otherwise, !code && strings.HasPrefix(row[2], "`"):
			t.Errorf("the page says that %s is %s by default, the programs have %s", row[1], row[2], otherwise)
		}
	}
	for _, variable := range want {
		if !slices.Contains(listed, variable) {
			t.Errorf("the page does not have %s", variable)
		}
	}
}

// Where nothing is set: 50 events of one read, Pub/Sub, and four topics.
func TestTheMarketplacesDefaults(t *testing.T) {
	t.Parallel()
	text, code := execute(t, theApplication(t), "bin/outbox-publisher config show",
		"POSTHASTE_DATABASE_URL=postgres://127.0.0.1/shop", "POSTHASTE_PUBSUB_PROJECT=shop")
	for key, want := range map[string]string{
		"broker": "pubsub", "relay.batch": "50", "relay.poll": "500ms", "topic.default": "pf-domain-events",
		"topic.analytics":     "analytics",
		"topic.notifications": "notifications", "topic.billing": "billing",
	} {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(key) + ` +` + want + ` `).MatchString(text) {
			t.Errorf("%s is not %s", key, want)
		}
	}
	if code != 0 || t.Failed() {
		t.Errorf("exit code %d\n%s", code, text)
	}
}

var targetPattern = regexp.MustCompile(`(?m)^([a-z-]+):[^=\n]*## `)

// The targets that build and run a publisher are there, and those that the page names.
func TestTheMarketplacesTargets(t *testing.T) {
	t.Parallel()
	var targets []string
	for _, match := range targetPattern.FindAllStringSubmatch(read(t, marketplace+"/Makefile"), -1) {
		targets = append(targets, match[1])
	}
	named := []string{"build", "build-outbox-publisher", "run-outbox-publisher"}
	// What is typed elsewhere is in between.
	first, rest, _ := strings.Cut(read(t, marketplace+"/README.md"), "From the root of the repository")
	_, rest, _ = strings.Cut(rest, "## The processes")
	for _, match := range regexp.MustCompile("(?m)(?:^|`)(?:[A-Z_]+=[a-z]+ )?make ([a-z-]+)").FindAllStringSubmatch(
		first+rest, -1) {
		named = append(named, match[1])
	}
	for _, name := range named {
		if !slices.Contains(targets, name) && name != "services" {
			t.Errorf("there is no target %s", name)
		}
	}
	if len(named) < 10 {
		t.Errorf("found %v: this test does not see the targets", named)
	}
}

// The first steps of the marketplace's page, word by word, on servers that have nothing yet: the event is seen in
// Pub/Sub.
func TestTheMarketplacesFirstSteps(t *testing.T) {
	t.Parallel()
	fresh, err := publisher.NewFresh(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fresh.Close(); err != nil {
			t.Error(err)
		}
	})
	walked, err := fresh.Walk(t.Context(), publisher.Marketplace(t.TempDir()), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	if len(walked.Problems) > 0 || walked.Steps != 2 {
		t.Errorf("%d steps did what the page says; %v", walked.Steps, walked.Problems)
	}
	t.Logf("the event was in Pub/Sub after %s", walked.Delivered.Round(time.Millisecond))
}
