package deploy

import (
	"regexp"
	"strings"
	"testing"
)

// stage is a part of the Dockerfile, with its instructions in order.
type stage struct {
	from, name   string
	instructions []instruction
}

type instruction struct{ name, text string }

// of returns the texts of one instruction.
func (s stage) of(name string) (texts []string) {
	for _, i := range s.instructions {
		if i.name == name {
			texts = append(texts, i.text)
		}
	}
	return texts
}

// stages reads the Dockerfile, which has an instruction a line.
func stages(text string) map[string]stage {
	found := map[string]stage{}
	var current stage
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case name == "" || strings.HasPrefix(name, "#"):
			continue
		case name == "FROM":
			from, alias, _ := strings.Cut(rest, " AS ")
			current = stage{from: from, name: alias}
		default:
			current.instructions = append(current.instructions, instruction{name: name, text: rest})
		}
		found[current.name] = current
	}
	return found
}

// environment is what the stage sets.
func (s stage) environment() map[string]string {
	set := map[string]string{}
	for _, text := range s.of("ENV") {
		for pair := range strings.FieldsSeq(text) {
			name, value, _ := strings.Cut(pair, "=")
			set[name] = value
		}
	}
	return set
}

func TestTheImage(t *testing.T) {
	t.Parallel()
	all := stages(read(t, "Dockerfile"))
	for name, s := range all {
		if _, ours := all[s.from]; s.from != "scratch" && !ours && !pinned.MatchString(s.from) {
			t.Errorf("%s begins with %s, which is no fixed version", name, s.from)
		}
		if user := strings.Join(s.of("USER"), ""); name != "build" &&
			!regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`).MatchString(user) {
			t.Errorf("%s runs as %q: Kubernetes can tell only of a number that it is not root", name, user)
		}
	}
	image, port := all["publisher"], defaultPort(t)
	if image.from != "scratch" {
		t.Errorf("the image begins with %s", image.from)
	}
	if got := image.environment()["POSTHASTE_HTTP_LISTEN"]; got != ":"+port {
		t.Errorf("it listens at %q", got)
	}
	if got := strings.Join(image.of("EXPOSE"), " "); got != port {
		t.Errorf("it exposes %s, the program answers on %s", got, port)
	}
	if got := strings.Join(image.of("ENTRYPOINT"), ""); got != `["outbox-publisher"]` {
		t.Errorf("it starts %s", got)
	}
	if got := strings.Join(image.of("HEALTHCHECK"), ""); !strings.HasSuffix(got,
		`CMD ["outbox-publisher", "health", "--live"]`) {
		t.Errorf("the health check is %s: an outage must not fail it", got)
	}
}
