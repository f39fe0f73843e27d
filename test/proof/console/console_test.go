package console_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/test/proof/console"
	"github.com/posthaste-dev/posthaste/test/proof/console/browser"
)

// well is a report of a run in which nothing was missed.
func well(plan console.Plan) *console.Report {
	r := console.NewReport(plan)
	r.Pages = 30
	for n := range r.Pages {
		for _, theme := range []string{"dark", "light"} {
			r.Shop = append(r.Shop, console.Visit{
				Name: fmt.Sprint(n), Theme: theme, Status: 200, Width: 1280, Window: 1280,
				Faults: []browser.Fault{{ID: "region", Impact: "moderate"}},
			})
		}
		r.Shop = append(r.Shop, console.Visit{Name: fmt.Sprint(n), Theme: "light", Status: 200, Width: 390, Window: 390})
	}
	r.Plain, r.PlainFilter = map[string]int{"overview": 500}, true
	for range 52 {
		r.Injections.Visits = append(r.Injections.Visits, console.Visit{Status: 200})
	}
	r.Injections.Strings, r.Injections.StringsFound = 52, 52
	r.Injections.Fields, r.Injections.FieldsFound = 39, 39
	r.Injections.ControlDialogs, r.Injections.ControlReports = 1, 1
	r.Refresh = console.Refresh{
		Refreshed: 3, Shifts: map[string]float64{"overview": 0.01}, Control: 3, ShownAgain: true, ResumedAgain: true,
	}
	r.Paints = map[string][]float64{"overview": {90, 80, 1_000}}
	r.Verbs = map[string]string{}
	for n := range console.Verbs {
		r.Verbs[fmt.Sprint(n)] = ""
	}
	r.Story = console.Story{
		Steps: make([]string, console.Steps()), Group: 60, Redriven: 60, Reissued: 1, Followers: console.Followers,
		Looks: 2, Edits: 1, Redrives: 60,
	}
	return r
}

// wrong are reports of which each must miss a must by itself.
var wrong = map[string]struct {
	change func(*console.Report)
	says   string // what only times show begins with "long: "
}{
	"nothing":        {func(*console.Report) {}, ""},
	"a part broke":   {func(r *console.Report) { r.Failed = []string{"the story: no"} }, "the story: no"},
	"few pages":      {func(r *console.Report) { r.Pages, r.Shop = 29, r.Shop[3:] }, "29 pages of the shop"},
	"a view too few": {func(r *console.Report) { r.Shop = r.Shop[1:] }, "89 looks at 30 pages"},
	"axe not run": {func(r *console.Report) {
		for i := range r.Shop {
			r.Shop[i].Faults = nil
		}
	}, "axe looked at 0 pages"},
	"axe in one theme": {func(r *console.Report) { r.Shop[0].Faults = nil }, "long: axe looked at 59 pages"},
	"axe serious":      {func(r *console.Report) { r.Shop[0].Faults[0].Impact = "serious" }, "0 in dark: serious"},
	"axe critical":     {func(r *console.Report) { r.Shop[1].Faults[0].Impact = "critical" }, "0 in light: critical"},
	"too wide":         {func(r *console.Report) { r.Shop[2].Width = 391 }, "it is 391 wide on a phone"},
	"an error": {
		func(r *console.Report) { r.Shop[3].Seen.Errors = []string{"x is not defined"} }, "x is not defined",
	},
	"it fails": {func(r *console.Report) { r.Shop[3].Status = 503 }, "the console answers 503"},
	"a dialog": {
		func(r *console.Report) { r.Shop[3].Seen.Dialogs = []string{"alert 7"} }, "a script of others ran",
	},
	"a hostile one": {
		func(r *console.Report) { r.Injections.Visits[5].Seen.Dialogs = []string{"alert 8"} }, "alert 8",
	},
	"a report": {
		func(r *console.Report) { r.Injections.Visits[5].Seen.CSP = []string{"inline"} }, "the policy was violated",
	},
	"a failing one": {func(r *console.Report) { r.Injections.Visits[5].Status = 500 }, "the console answers 500"},
	"not read":      {func(r *console.Report) { r.Plain["overview"] = 9 }, "overview: 9 characters"},
	"none read":     {func(r *console.Report) { r.Plain = nil }, "0 screens were read"},
	"no filter":     {func(r *console.Report) { r.PlainFilter = false }, "a filter works there: false"},
	"few strings": {
		func(r *console.Report) { r.Injections.Strings, r.Injections.StringsFound = 49, 49 }, "49 hostile texts",
	},
	"a string lost": {func(r *console.Report) { r.Injections.StringsFound = 51 }, "51 of 52 hostile texts"},
	"few fields": {
		func(r *console.Report) { r.Injections.Fields, r.Injections.FieldsFound = 9, 9 }, "were in 9 fields",
	},
	"a field lost": {func(r *console.Report) { r.Injections.FieldsFound = 38 }, "of 38 of 39 fields"},
	"a wide one": {
		func(r *console.Report) { r.Injections.Visits[5].Width, r.Injections.Visits[5].Window = 400, 390 },
		"it is 400 wide on a phone",
	},
	"few hostile": {
		func(r *console.Report) { r.Injections.Visits = r.Injections.Visits[2:] }, "50 pages with hostile texts",
	},
	"blind, a dialog": {func(r *console.Report) { r.Injections.ControlDialogs = 0 }, "gave no dialog"},
	"blind, a report": {func(r *console.Report) { r.Injections.ControlReports = 0 }, "gave no report"},
	"no refresh":      {func(r *console.Report) { r.Refresh.Refreshed = 0 }, "no page was read again"},
	"it moves":        {func(r *console.Report) { r.Refresh.Shifts["overview"] = 0.1 }, "overview: 0.100 of it moves"},
	"no control":      {func(r *console.Report) { r.Refresh.Control = 2 }, "was read again 2 times"},
	"hidden":          {func(r *console.Report) { r.Refresh.Hidden = 1 }, "a page that nobody sees"},
	"paused":          {func(r *console.Report) { r.Refresh.Paused = 1 }, "a page that was paused"},
	"never again":     {func(r *console.Report) { r.Refresh.ResumedAgain = false }, "one that goes on: false"},
	"nobody was in":   {func(r *console.Report) { r.Unseen = []string{"audit"} }, "nobody went through audit"},
	"not measured":    {func(r *console.Report) { r.Paints = nil }, "nobody measured"},
	"late": {
		func(r *console.Report) { r.Paints["events"] = []float64{201, 201, 90} },
		"long: the first paint of events takes 201",
	},
	"a verb":       {func(r *console.Report) { r.Verbs["0"] = "of 2 events 1 are" }, "0: of 2 events 1 are"},
	"few verbs":    {func(r *console.Report) { delete(r.Verbs, "0") }, "verbs were used"},
	"no end":       {func(r *console.Report) { r.Story.Steps = r.Story.Steps[1:] }, "the story ended after"},
	"not redriven": {func(r *console.Report) { r.Story.Redriven = 59 }, "redriven 59 of 60"},
	"no group": {
		func(r *console.Report) { r.Story.Redriven, r.Story.Group, r.Story.Redrives = 0, 0, 0 }, "redriven 0 of 0",
	},
	"edited twice":  {func(r *console.Report) { r.Story.Reissued = 2 }, "came 2 times"},
	"still blocked": {func(r *console.Report) { r.Story.Followers-- }, "that waited for the edited one"},
	"it waits":      {func(r *console.Report) { r.Story.Waiting = 1 }, "1 events still wait"},
	"it is dead":    {func(r *console.Report) { r.Story.Unresolved = 1 }, "1 dead letters still wait"},
	"no order":      {func(r *console.Report) { r.Story.Disorder = 1 }, "behind later ones"},
	"no look":       {func(r *console.Report) { r.Story.Looks = 0 }, "nobody wrote down who looked"},
	"no log":        {func(r *console.Report) { r.Story.Redrives = 59 }, "1 edits and 59 redrives"},
}

// TestTheReportFindsWhatWasMissed: each must by itself.
func TestTheReportFindsWhatWasMissed(t *testing.T) {
	t.Parallel()
	for name, c := range wrong {
		for form, plan := range map[string]console.Plan{"short": console.Short(), "long": console.Long()} {
			report := well(plan)
			c.change(report)
			says, long := strings.CutPrefix(c.says, "long: ")
			problems := strings.Join(report.Problems(), "\n")
			wanted := c.says != "" && (form == "long" || !long)
			if wanted != (problems != "") || wanted && !strings.Contains(problems, says) || report.OK() == wanted {
				t.Errorf("%s, %s: %q, want %q", name, form, problems, c.says)
			}
			var text strings.Builder
			if err := report.Print(&text); err != nil || !strings.Contains(text.String(), "\nproof-console chromium=") &&
				!strings.HasPrefix(text.String(), "proof-console chromium=") {
				t.Errorf("%s: %v, it prints %s", name, err, text.String())
			}
		}
	}
}

// TestATextIsFound as it is or as JSON writes it, and not where a part of it is missing.
func TestATextIsFound(t *testing.T) {
	t.Parallel()
	for page, want := range map[string]bool{
		"a\n<b x=\"1\">\u202e  c": true, `{"k": "<b x=\"1\"> c"}`: true, `<b x=&quot;1&quot;> c`: false, `<b x="1">`: false,
	} {
		if console.TextIsFound(`<b x="1"> c`, page) != want {
			t.Errorf("in %q it is found: %t", page, !want)
		}
	}
}
