package deploy

import (
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// compose is as much of compose.yaml as is tested.
type compose struct {
	Services map[string]struct {
		Image, Command any
		Entrypoint     []string
		Environment    map[string]string
		Ports          []string
		Healthcheck    struct{ Test []string }
		Grace          string                                `yaml:"stop_grace_period"`
		ReadOnly       bool                                  `yaml:"read_only"`
		DependsOn      map[string]struct{ Condition string } `yaml:"depends_on"`
		Volumes        []struct{ Source, Target string }
	}
}

func theCompose(t *testing.T) compose {
	t.Helper()
	var file compose
	if err := yaml.Unmarshal([]byte(read(t, "compose.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	return file
}

var pinned = regexp.MustCompile(`:v?\d+\.\d+[\w.-]*$|@sha256:[0-9a-f]{64}$`)

func TestComposeIsForOneMachine(t *testing.T) {
	t.Parallel()
	for name, service := range theCompose(t).Services {
		for _, port := range service.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s: %s is open to other machines", name, port)
			}
		}
		if image, _ := service.Image.(string); image != "outbox-publisher:local" && !pinned.MatchString(image) {
			t.Errorf("%s: %s is no fixed version", name, image)
		}
	}
}

func TestComposeStartsAPublisher(t *testing.T) {
	t.Parallel()
	file := theCompose(t)
	publisher, port := file.Services["publisher"], defaultPort(t)
	drain := defaultDrain(t)
	if own := publisher.Environment["POSTHASTE_RELAY_DRAIN"]; own != "" {
		drain = duration(t, own)
	}
	if err := enough(duration(t, publisher.Grace), drain); err != nil {
		t.Error("stop_grace_period", err)
	}
	if got := strings.Join(publisher.Healthcheck.Test, " "); got != "CMD outbox-publisher health" {
		t.Errorf("the health check is %q", got)
	}
	if got := strings.Join(publisher.Ports, " "); got != "127.0.0.1:"+port+":"+port {
		t.Errorf("the ports are %s, the program answers on %s", got, port)
	}
	if !publisher.ReadOnly {
		t.Error("its root can be written")
	}
	for name, want := range map[string]string{
		"migrate": "service_completed_successfully", "stream": "service_completed_successfully", "nats": "service_healthy",
	} {
		if got := publisher.DependsOn[name].Condition; got != want {
			t.Errorf("it waits for %s with %q", name, got)
		}
	}
	migrate := file.Services["migrate"]
	if migrate.Environment["POSTHASTE_DATABASE_URL"] != publisher.Environment["POSTHASTE_DATABASE_URL"] {
		t.Error("the tables are made in another database than the publisher's")
	}
	if migrate.Environment["POSTHASTE_INSECURE_ALLOW"] != "database" {
		t.Error("the tables' own program refuses a database on another machine without TLS")
	}
}

// streams returns the subjects of the stream that compose.yaml makes, and its name.
func streams(t *testing.T) (name string, subjects []string) {
	t.Helper()
	command, _ := theCompose(t).Services["stream"].Command.([]any)
	if len(command) != 3 {
		t.Fatalf("the command of stream is %v", command)
	}
	found := regexp.MustCompile(`nats stream add (\w+) --subjects=(\S+) --defaults$`).FindStringSubmatch(
		command[2].(string))
	if found == nil {
		t.Fatalf("the command of stream is %v", command[2])
	}
	return found[1], strings.Split(found[2], ",")
}

func TestComposeHasAStreamForEveryTopic(t *testing.T) {
	t.Parallel()
	var registry struct {
		Contracts []struct{ Type, Topic string }
	}
	if err := yaml.Unmarshal([]byte(read(t, "examples/registry.yaml")), &registry); err != nil {
		t.Fatal(err)
	}
	name, subjects := streams(t)
	if got := theCompose(t).Services["publisher"].Environment["POSTHASTE_NATS_STREAM"]; got != name {
		t.Errorf("the publisher wants the stream %s, and %s is made", got, name)
	}
	for _, contract := range registry.Contracts {
		if !strings.Contains(","+strings.Join(subjects, ",")+",", ","+contract.Topic+",") {
			t.Errorf("%s: no stream takes %q", contract.Type, contract.Topic)
		}
	}
	if len(registry.Contracts) < 10 {
		t.Error("this test does not see the contracts")
	}
}
