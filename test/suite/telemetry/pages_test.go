package telemetry

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestThePageListsEveryMetric compares docs/reference/metrics.md with the contract, line by line.
func TestThePageListsEveryMetric(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/reference/metrics.md")
	var listed []string
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "| `posthaste_") {
			listed = append(listed, strings.TrimSpace(line))
		}
	}
	var want []string
	for line := range strings.Lines(read(t, "telemetry/prometheus/testdata/metrics.golden") + read(t,
		"telemetry/prometheus/testdata/consumers.golden")) {
		words := strings.SplitN(strings.TrimSpace(line), " ", 4)
		labels := ""
		if names := strings.Trim(words[2], "{}"); names != "" {
			labels = "`" + strings.ReplaceAll(names, ",", "` `") + "`"
		}
		want = append(want, fmt.Sprintf("| `%s` | %s | %s | %s |", words[0], words[1], labels, words[3]))
	}
	if !slices.Equal(listed, want) {
		t.Errorf("docs/reference/metrics.md lists\n%s\nwant\n%s", strings.Join(listed, "\n"), strings.Join(want, "\n"))
	}
}

// TestThePageListsEveryCall: the values of the label call are part of the contract, too.
func TestThePageListsEveryCall(t *testing.T) {
	t.Parallel()
	page := strings.Join(strings.Fields(read(t, "docs/reference/metrics.md")), " ")
	if want := "`" + strings.Join(relay.Calls(), "`, `") + "`."; !strings.Contains(page, want) {
		t.Errorf("docs/reference/metrics.md does not list %s", want)
	}
}

// metricPattern finds metrics in an expression: those of ours, of the process and of the Go runtime.
var (
	metricPattern   = regexp.MustCompile(`\b(posthaste|process|go)_[a-z_]+`)
	selectorPattern = regexp.MustCompile(`((?:posthaste|process|go)_[a-z_]+)\{([^}]*)\}`)
	labelPattern    = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!=|!~|=)`)
	groupPattern    = regexp.MustCompile(`\b(?:by|on|without|ignoring)\s*\(([^)]*)\)`)
	legendPattern   = regexp.MustCompile(`\{\{\s*([a-z_]+)\s*\}\}`)
)

// known are the metrics of what runs, by every name that an expression may use, with their labels.
func known(families map[string]*family) map[string][]string {
	names := map[string][]string{
		"process_resident_memory_bytes": nil, "process_cpu_seconds_total": nil, "go_goroutines": nil,
	}
	for name, f := range families {
		labels := slices.Concat(f.labels, []string{"job", "instance"})
		if f.kind != "histogram" {
			names[name] = labels
			continue
		}
		names[name+"_bucket"], names[name+"_sum"], names[name+"_count"] = append(labels, "le"), labels, labels
	}
	return names
}

// problems says what an expression takes for granted and nobody has.
func problems(expression string, names map[string][]string) (wrong []string) {
	metrics := metricPattern.FindAllString(expression, -1)
	if len(metrics) == 0 {
		wrong = append(wrong, "asks for no metric")
	}
	allowed := []string{"job", "instance"}
	for _, name := range metrics {
		if _, is := names[name]; !is {
			wrong = append(wrong, "there is no metric "+name)
		}
		allowed = append(allowed, names[name]...)
	}
	for _, selector := range selectorPattern.FindAllStringSubmatch(expression, -1) {
		for _, label := range labelPattern.FindAllStringSubmatch(selector[2], -1) {
			if !slices.Contains(append(names[selector[1]], "job", "instance"), label[1]) {
				wrong = append(wrong, selector[1]+" has no label "+label[1])
			}
		}
	}
	for _, group := range groupPattern.FindAllStringSubmatch(expression, -1) {
		for label := range strings.SplitSeq(group[1], ",") {
			if !slices.Contains(allowed, strings.TrimSpace(label)) {
				wrong = append(wrong, "no metric of it has the label "+label)
			}
		}
	}
	return wrong
}

// A panel of the dashboard.
type panel struct {
	Title   string
	Type    string
	Targets []struct{ Expr, LegendFormat string }
	Panels  []panel
}

// dashboard returns the panels that show something.
func dashboard(t *testing.T) (panels []panel) {
	t.Helper()
	var board struct{ Panels []panel }
	if err := json.Unmarshal([]byte(read(t, "deploy/grafana/posthaste.json")), &board); err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		for _, inner := range append([]panel{p}, p.Panels...) {
			if inner.Type != "row" {
				panels = append(panels, inner)
			}
		}
	}
	return panels
}

// A rule of the alerts.
type rule struct {
	Alert       string
	Expr        string
	Labels      map[string]string
	Annotations map[string]string
}

func alerts(t *testing.T) []rule {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []rule }
	}
	if err := yaml.Unmarshal([]byte(read(t, "deploy/prometheus/posthaste.rules.yml")), &file); err != nil {
		t.Fatal(err)
	}
	var list []rule
	for _, group := range file.Groups {
		list = append(list, group.Rules...)
	}
	return list
}

// TestExpressionsAskForWhatIsThere compares every panel and every alert with what a running relay and a consumer
// answer.
func TestExpressionsAskForWhatIsThere(t *testing.T) {
	t.Parallel()
	w := newEnv(t, pgtest.New(t, pgtest.Servers()[0]), nil)
	w.until(map[string]string{
		"relay_lanes": "= 64", `outbox_backlog_events{state="ready"}`: "= 0", "outbox_dead_events": "= 0",
		"outbox_relays": "= 1",
	})
	// Its age is shown when retention has run.
	w.Exec(t, "UPDATE {schema}.outbox_retention SET ran_at = now()")
	families := w.until(map[string]string{`outbox_retention_age_seconds{kind="published"}`: ">= 0"})
	maps.Copy(families, newConsumer(t).scrape(t))
	names := known(families)
	used := map[string]bool{}
	check := func(where, expression string) {
		for _, problem := range problems(expression, names) {
			t.Errorf("%s: %s: %s", where, expression, problem)
		}
		for _, name := range metricPattern.FindAllString(expression, -1) {
			used[name] = true
		}
	}
	panels := dashboard(t)
	if len(panels) < 20 {
		t.Errorf("the dashboard has %d panels", len(panels))
	}
	for _, p := range panels {
		if len(p.Targets) == 0 {
			t.Errorf("panel %s shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			check("panel "+p.Title, target.Expr)
			for _, label := range legendPattern.FindAllStringSubmatch(target.LegendFormat, -1) {
				if !strings.Contains(target.Expr, label[1]) && label[1] != "instance" {
					t.Errorf("panel %s: the legend has %s, and %s does not keep it", p.Title, label[1], target.Expr)
				}
			}
		}
	}
	for _, alert := range alerts(t) {
		check("alert "+alert.Alert, alert.Expr)
	}
	for _, p := range slices.Concat(promises(t, "metrics"), promises(t, "consumers")) {
		if !used[p.name] && !used[p.name+"_bucket"] {
			t.Errorf("%s is in no panel and in no alert", p.name)
		}
	}
}

// TestProblems: the check of expressions finds what it is for.
func TestProblems(t *testing.T) {
	t.Parallel()
	names := map[string][]string{"posthaste_a": {"topic"}, "posthaste_b_bucket": {"le"}}
	for expression, want := range map[string]string{
		`sum by (topic) (posthaste_a{topic="x"})`:                                      "",
		`histogram_quantile(0.9, sum by (le) (rate(posthaste_b_bucket{job="x"}[5m])))`: "",
		`max(posthaste_c)`:                    "there is no metric posthaste_c",
		`max(posthaste_b)`:                    "there is no metric posthaste_b",
		`max(posthaste_a{tenant="x"})`:        "posthaste_a has no label tenant",
		`max by (tenant) (posthaste_a)`:       "no metric of it has the label tenant",
		`1 + 1`:                               "asks for no metric",
		`max(posthaste_b_bucket{topic=~"x"})`: "posthaste_b_bucket has no label topic",
	} {
		if got := strings.Join(problems(expression, names), "; "); got != want {
			t.Errorf("%s: %q, want %q", expression, got, want)
		}
	}
}

// TestEveryAlertIsTested: each has a test in which it fires and one in which it does not, and a page that says what to
// do.
func TestEveryAlertIsTested(t *testing.T) {
	t.Parallel()
	var file struct {
		Tests []struct {
			AlertRuleTest []struct {
				Alertname string           `yaml:"alertname"`
				ExpAlerts []map[string]any `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "deploy/prometheus/posthaste.rules.test.yml")), &file); err != nil {
		t.Fatal(err)
	}
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		for _, look := range test.AlertRuleTest {
			if len(look.ExpAlerts) > 0 {
				fires[look.Alertname] = true
			} else {
				quiet[look.Alertname] = true
			}
		}
	}
	runbook := read(t, "docs/operate/operations.md")
	for _, alert := range alerts(t) {
		if !fires[alert.Alert] || !quiet[alert.Alert] {
			t.Errorf("%s: seen to fire: %v, seen not to: %v", alert.Alert, fires[alert.Alert], quiet[alert.Alert])
		}
		if severity := alert.Labels["severity"]; severity != "critical" && severity != "warning" {
			t.Errorf("%s: severity %q", alert.Alert, severity)
		}
		if alert.Annotations["summary"] == "" || alert.Annotations["description"] == "" {
			t.Errorf("%s says nothing", alert.Alert)
		}
		_, anchor, _ := strings.Cut(alert.Annotations["runbook_url"], "/docs/operate/operations.md#")
		if anchor != strings.ToLower(alert.Alert) {
			t.Errorf("%s: the runbook is %s", alert.Alert, alert.Annotations["runbook_url"])
		}
		if !regexp.MustCompile(`(?m)^#+ ` + alert.Alert + `$`).MatchString(runbook) {
			t.Errorf("docs/operate/operations.md has no heading %s", alert.Alert)
		}
	}
}
