package deploy

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// object is as much of a Kubernetes object as is tested.
type object struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
	Spec     struct {
		Template struct{ Spec pod }
	}
}

type pod struct {
	Grace        int            `yaml:"terminationGracePeriodSeconds"`
	ServiceLinks *bool          `yaml:"enableServiceLinks"`
	Security     map[string]any `yaml:"securityContext"`
	Containers   []container
}

type container struct {
	Name, Image string
	Command     []string
	Args        []string
	Env         []struct{ Name, Value string }
	Ports       []struct {
		Name string
		Port int `yaml:"containerPort"`
	}
	Liveness  probe          `yaml:"livenessProbe"`
	Readiness probe          `yaml:"readinessProbe"`
	Security  map[string]any `yaml:"securityContext"`
}

type probe struct {
	Get struct{ Path, Port string } `yaml:"httpGet"`
}

// goldens are what the chart makes of each values file; scripts/check-deploy compares them with the chart.
func goldens(t *testing.T) map[string][]object {
	t.Helper()
	found := map[string][]object{}
	values, err := filepath.Glob("testdata/helm/*.values.yaml")
	if err != nil || len(values) < 3 {
		t.Fatalf("found %v (%v)", values, err)
	}
	for _, file := range values {
		name := strings.TrimSuffix(filepath.Base(file), ".values.yaml")
		decoder := yaml.NewDecoder(strings.NewReader(read(t, "test/suite/deploy/testdata/helm/"+name+".golden.yaml")))
		for {
			var o object
			if err := decoder.Decode(&o); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			found[name] = append(found[name], o)
		}
	}
	return found
}

// kind finds the only object of a kind whose name ends so.
func kind(t *testing.T, objects []object, kind, suffix string) object {
	t.Helper()
	i := slices.IndexFunc(objects, func(o object) bool {
		return o.Kind == kind && strings.HasSuffix(o.Metadata.Name, suffix)
	})
	if i < 0 {
		t.Fatalf("there is no %s", kind)
	}
	return objects[i]
}

func TestTheChart(t *testing.T) {
	t.Parallel()
	for name, objects := range goldens(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var config struct {
				HTTP  struct{ Listen string }
				Relay struct{ Drain string }
			}
			if err := yaml.Unmarshal([]byte(kind(t, objects, "ConfigMap", "-posthaste").Data["config.yaml"]),
				&config); err != nil {
				t.Fatal(err)
			}
			pod := kind(t, objects, "Deployment", "").Spec.Template.Spec
			if err := enough(time.Duration(pod.Grace)*time.Second, duration(t, config.Relay.Drain)); err != nil {
				t.Error("terminationGracePeriodSeconds", err)
			}
			if len(pod.Containers) != 1 || len(pod.Containers[0].Ports) != 1 {
				t.Fatalf("the containers are %+v", pod.Containers)
			}
			c, port := pod.Containers[0], defaultPort(t)
			if fmt.Sprint(c.Ports[0].Port) != port || config.HTTP.Listen != ":"+port {
				t.Errorf("the port is %v, it listens at %s, and the program's own is %s", c.Ports[0].Port, config.HTTP.Listen, port)
			}
			if c.Liveness.Get.Path != "/livez" || c.Readiness.Get.Path != "/readyz" || c.Liveness.Get.Port != c.Ports[0].Name ||
				c.Readiness.Get.Port != c.Ports[0].Name {
				t.Errorf("the probes are %+v and %+v", c.Liveness, c.Readiness)
			}
			for _, o := range objects {
				if len(o.Spec.Template.Spec.Containers) > 0 {
					restricted(t, o.Kind, o.Spec.Template.Spec)
				}
			}
		})
	}
}

// restricted holds a pod to the strictest of Kubernetes' own standards, and to what the publisher needs of it.
func restricted(t *testing.T, kind string, p pod) {
	t.Helper()
	if p.ServiceLinks == nil || *p.ServiceLinks {
		t.Errorf("%s: every Service is told as variables, which nobody reads", kind)
	}
	if p.Security["runAsNonRoot"] != true || fmt.Sprint(p.Security["seccompProfile"]) != "map[type:RuntimeDefault]" {
		t.Errorf("%s: the pod may %v", kind, p.Security)
	}
	for _, c := range p.Containers {
		if fmt.Sprint(c.Security) !=
			"map[allowPrivilegeEscalation:false capabilities:map[drop:[ALL]] readOnlyRootFilesystem:true]" {
			t.Errorf("%s: the container may %v", kind, c.Security)
		}
	}
}

// The hook that migrates also grants: a migration may bring tables to which the publisher has no right yet.
func TestTheMigrationGrants(t *testing.T) {
	t.Parallel()
	hook := kind(t, goldens(t)["everything"], "Job", "-migrate").Spec.Template.Spec.Containers[0].Command
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		role := pgtest.NewRole(t, db.Server, "publisher")
		here := strings.NewReplacer("=billing_publisher", "="+role, "--schema=billing", "--schema="+db.Schema)
		var args []string
		for _, word := range hook[1:] {
			args = append(args, here.Replace(word))
		}
		run := exec.CommandContext(t.Context(), program(t, hook[0]), args...)
		run.Env = []string{"POSTHASTE_DATABASE_URL=" + db.URL}
		text, err := run.CombinedOutput()
		for _, part := range []string{"relay", "janitor"} {
			if err != nil || !strings.Contains(string(text), "role "+role+" is now "+part+" in schema "+db.Schema) {
				t.Errorf("%v: %v\n%s", args, err, text)
			}
		}
		publisher := db.Open(t, pgtest.As(t, db.URL, role))
		if _, err := publisher.Exec(t.Context(), db.SQL("SELECT count(*) FROM {schema}.outbox_lanes")); err != nil {
			t.Errorf("the publisher's role has no right: %v", err)
		}
	})
}

// What the chart mounts and sets is a configuration that the program accepts.
func TestTheProgramAcceptsTheChart(t *testing.T) {
	t.Parallel()
	for name, objects := range goldens(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if text, code := started(t, objects); code != 0 {
				t.Errorf("exit code %d\n%s", code, text)
			}
			if text, code := started(t, objects, "POSTHASTE_RELAY_DRIAN=5s"); code != 2 {
				t.Errorf("with a variable that it does not know: exit code %d\n%s", code, text)
			}
		})
	}
}

// started runs `config show` as the Deployment would run the program, with its files under a folder of the test's.
func started(t *testing.T, objects []object, more ...string) (output string, code int) {
	t.Helper()
	folder := t.TempDir()
	here := strings.NewReplacer("/etc/posthaste/", folder+"/etc/posthaste/", "/run/posthaste/", folder+"/run/posthaste/")
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(here.Replace(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(here.Replace(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("/etc/posthaste/registry/registry.yaml", read(t, "examples/registry.yaml"))
	if err := os.CopyFS(here.Replace("/etc/posthaste/registry/schemas"),
		os.DirFS(filepath.Join(root, "examples/schemas"))); err != nil {
		t.Fatal(err)
	}
	write("/etc/posthaste/config/config.yaml",
		here.Replace(kind(t, objects, "ConfigMap", "-posthaste").Data["config.yaml"]))
	secrets := map[string]string{
		"database.url":        "postgres://relay@db.example.com/shop?sslmode=verify-full\n",
		"database.listen_url": "postgres://relay@db.example.com/shop?sslmode=verify-full\n",
		"nats.url":            "tls://nats.example.com:4222\n",
	}
	c := kind(t, objects, "Deployment", "").Spec.Template.Spec.Containers[0]
	args := []string{"config", "show"}
	for _, arg := range c.Args {
		args = append(args, here.Replace(arg))
	}
	run := exec.CommandContext(t.Context(), program(t, "outbox-publisher"), args...)
	run.Env = more
	for _, variable := range c.Env {
		if strings.HasPrefix(variable.Value, "/run/posthaste/secrets/") {
			write(variable.Value, secrets[filepath.Base(variable.Value)])
		}
		run.Env = append(run.Env, variable.Name+"="+here.Replace(variable.Value))
	}
	text, err := run.CombinedOutput()
	if exited := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exited) {
		t.Fatal(err)
	}
	return string(text), run.ProcessState.ExitCode()
}
