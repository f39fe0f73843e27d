package telemetry

import (
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A family is a metric with its series, as a scrape shows it.
type family struct {
	kind, help string
	labels     []string           // of its first series, sorted, without le
	series     map[string]float64 // by labels as they are written; those of a histogram are its _count and _sum
}

// scrape asks for /metrics and reads Prometheus' text format. Metrics of the Go runtime and the process are left out.
func scrape(t *testing.T, url string) map[string]*family {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %v:\n%s", answer.StatusCode, err, text)
	}
	families := map[string]*family{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case !strings.Contains(line, "posthaste_"):
		case strings.HasPrefix(line, "# HELP "):
			name, help, _ := strings.Cut(strings.TrimPrefix(line, "# HELP "), " ")
			families[name] = &family{help: help, series: map[string]float64{}}
		case strings.HasPrefix(line, "# TYPE "):
			name, kind, _ := strings.Cut(strings.TrimPrefix(line, "# TYPE "), " ")
			families[name].kind = kind
		default:
			take(t, families, line)
		}
	}
	return families
}

// take takes in one series: name{labels} value.
func take(t *testing.T, families map[string]*family, line string) {
	t.Helper()
	at := strings.LastIndex(line, " ")
	value, err := strconv.ParseFloat(line[at+1:], 64)
	if err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	name, labels, _ := strings.Cut(strings.TrimSuffix(line[:at], "}"), "{")
	f, suffix := families[name], ""
	if f == nil {
		for _, suffix = range []string{"_bucket", "_sum", "_count"} {
			if f = families[strings.TrimSuffix(name, suffix)]; f != nil && strings.HasSuffix(name, suffix) {
				break
			}
		}
	}
	if f == nil {
		t.Fatalf("%q has no type", line)
	}
	if suffix == "_bucket" {
		return
	}
	f.labels = nil
	for pair := range strings.SplitSeq(labels, ",") {
		if label, _, found := strings.Cut(pair, "="); found {
			f.labels = append(f.labels, label)
		}
	}
	slices.Sort(f.labels)
	f.series["{"+labels+"}"+suffix] = value
}

// A promise is a line of the golden file.
type promise struct {
	name, kind, help string
	labels           []string
}

// promises reads the contract: "metrics" is that of a relay's, "consumers" theirs.
func promises(t *testing.T, of string) []promise {
	t.Helper()
	text, err := os.ReadFile("../../../telemetry/prometheus/testdata/" + of + ".golden")
	if err != nil {
		t.Fatal(err)
	}
	var list []promise
	for line := range strings.Lines(string(text)) {
		words := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 4)
		p := promise{name: words[0], kind: words[1], help: words[3]}
		if labels := strings.Trim(words[2], "{}"); labels != "" {
			p.labels = strings.Split(labels, ",")
			slices.Sort(p.labels)
		}
		list = append(list, p)
	}
	return list
}
