package console

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/posthaste-dev/posthaste/internal/figures"
)

// The musts.
const (
	// leastStrings is how many hostile texts must be found, leastPages how many pages of the shop there must be.
	leastStrings, leastPages = 50, 30
	// leastFields is how many fields hostile texts must be in.
	leastFields = 36
	// leastVerbs is how many verbs must be used.
	leastVerbs = 19
	// phoneWidth is how wide a page may be on a phone.
	phoneWidth = 390
	// mostShift is how much of a page may move by itself while it refreshes.
	mostShift = 0.1
	// mostPaint is until when something of a page must be seen, in milliseconds.
	mostPaint = 200
)

// Report is what came of it.
type Report struct {
	Chromium string
	Pages    int     // of the shop
	Shop     []Visit // of its pages, in each view
	// Plain is how many characters of each screen are read without scripts, PlainFilter whether a filter works so.
	Plain       map[string]int
	PlainFilter bool
	Others      []Visit // where somebody used a verb, or repaired
	Injections  Injections
	Refresh     Refresh
	Paints      map[string][]float64 // milliseconds, by page
	// Verbs are those that somebody used by the pages' buttons, each with what came of it; empty: what should.
	Verbs   map[string]string
	Story   Story
	Unseen  []string // entries of the console that nobody went through
	Failed  []string // parts that came to no end, with the reason
	Log     string   // the end of what the console said
	Seconds float64

	plan Plan
}

// NewReport is for tests of what decides.
func NewReport(plan Plan) *Report { return &Report{plan: plan} }

// OK tells whether nothing was missed.
func (r *Report) OK() bool { return len(r.Problems()) == 0 }

// must notes what was missed.
type must func(ok bool, format string, args ...any)

// Problems lists the musts that were missed.
func (r *Report) Problems() (problems []string) {
	m := must(func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	})
	for _, failed := range r.Failed {
		m(false, "%s", failed)
	}
	m(r.Pages >= leastPages, "%d pages of the shop were looked at, and %d are the least", r.Pages, leastPages)
	m(len(r.Shop) == r.Pages*len(shopViews), "%d looks at %d pages of the shop, and each has %d", len(r.Shop), r.Pages,
		len(shopViews))
	m(len(r.Unseen) == 0, "nobody went through %s", strings.Join(r.Unseen, ", "))
	faulted := 0
	for _, v := range r.Shop {
		v.problems(m)
		if v.Faults != nil {
			faulted++
		}
	}
	for _, v := range r.Others {
		v.problems(m)
	}
	m(faulted >= r.plan.Themes*r.Pages, "axe looked at %d pages, and there are %d in %d themes", faulted, r.Pages,
		r.plan.Themes)
	m(len(r.Plain) > 0 && r.PlainFilter, "%d screens were read without scripts, and a filter works there: %t",
		len(r.Plain), r.PlainFilter)
	for name, characters := range r.Plain {
		m(characters >= leastRead, "%s: %d characters are read without scripts, and %d are the least", name, characters,
			leastRead)
	}
	r.Injections.problems(m)
	r.Refresh.problems(m)
	m(len(r.Verbs) >= leastVerbs, "%d verbs were used, and %d are the least", len(r.Verbs), leastVerbs)
	for verb, wrong := range r.Verbs {
		m(wrong == "", "%s: %s", verb, wrong)
	}
	r.Story.problems(m)
	worst, took := r.slowest()
	m(len(r.Paints) > 0, "nobody measured when something is seen")
	m(!r.plan.TimesDecide || took <= mostPaint, "the first paint of %s takes %.0f ms, and %d are the most", worst, took,
		mostPaint)
	return problems
}

// problems are those of a page in order.
func (v *Visit) problems(m must) {
	name := v.Name + " in " + v.Theme
	v.quiet(name, m)
	// The browser takes an answer that is none for an error of the page.
	m(v.Status >= 400 || len(v.Seen.Errors) == 0, "%s: errors in the console: %q", name, v.Seen.Errors)
	for _, fault := range v.Faults {
		m(fault.Impact != "serious" && fault.Impact != "critical", "%s: %s: %s: %q", name, fault.Impact, fault.Help,
			fault.Nodes[:min(len(fault.Nodes), 2)])
	}
	m(v.Window != phoneWidth || v.Width <= phoneWidth, "%s: it is %d wide on a phone of %d: %q", name, v.Width, phoneWidth,
		v.Beside)
}

// quiet is what every page must be, whatever is on it.
func (v *Visit) quiet(name string, m must) {
	m(len(v.Seen.Dialogs) == 0, "%s: a script of others ran: %q", name, v.Seen.Dialogs)
	m(len(v.Seen.CSP) == 0, "%s: the policy was violated: %q", name, v.Seen.CSP)
	m(v.Status >= 200 && v.Status < 500, "%s: the console answers %d", name, v.Status)
}

func (j *Injections) problems(m must) {
	for _, v := range j.Visits {
		v.quiet(v.Name, m)
		m(v.Window != phoneWidth || v.Width <= phoneWidth, "%s: it is %d wide on a phone of %d: %q", v.Name, v.Width,
			phoneWidth, v.Beside)
		m(v.Status >= 400 || len(v.Seen.Errors) == 0, "%s: errors in the console: %q", v.Name, v.Seen.Errors)
	}
	m(j.Strings >= leastStrings, "%d hostile texts were tried, and %d are the least", j.Strings, leastStrings)
	m(j.StringsFound == j.Strings, "%d of %d hostile texts were found on a page", j.StringsFound, j.Strings)
	m(j.Fields >= leastFields, "hostile texts were in %d fields, and %d are the least", j.Fields, leastFields)
	m(j.FieldsFound == j.Fields, "of %d of %d fields some text was found on a page: %q", j.FieldsFound, j.Fields,
		j.Missing)
	m(len(j.Visits) >= j.Strings, "%d pages with hostile texts were opened", len(j.Visits))
	m(j.ControlDialogs > 0, "a page without a policy that does not escape gave no dialog: nothing would be seen")
	m(j.ControlReports > 0, "a page with a policy that does not escape gave no report: nothing would be seen")
}

func (f *Refresh) problems(m must) {
	m(f.Refreshed > 0, "no page was read again by itself")
	for name, shift := range f.Shifts {
		m(shift < mostShift, "%s: %.3f of it moves while it refreshes, and %.1f is the most: %q", name, shift, mostShift,
			f.Moved[name])
	}
	m(f.Control >= rereadsToSee, "the page that was seen was read again %d times", f.Control)
	m(f.Hidden == 0, "a page that nobody sees was read again %d times", f.Hidden)
	m(f.Paused == 0, "a page that was paused was read again %d times", f.Paused)
	m(f.ShownAgain && f.ResumedAgain, "a page that is seen again is read again: %t; one that goes on: %t", f.ShownAgain,
		f.ResumedAgain)
}

// slowest is the page on which something is seen last, by the median.
func (r *Report) slowest() (page string, milliseconds float64) {
	for name, list := range r.Paints {
		if took := median(list); took > milliseconds {
			page, milliseconds = name, took
		}
	}
	return page, milliseconds
}

func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// Print writes what was missed, and the last line.
func (r *Report) Print(to io.Writer) error {
	problems := r.Problems()
	for _, problem := range problems[:min(len(problems), 60)] {
		_, _ = fmt.Fprintf(to, "MISSED: %.2500s\n", problem) // kept by the last write
	}
	for _, missing := range r.Injections.Missing {
		_, _ = fmt.Fprintln(to, "not found:", missing)
	}
	if len(problems) > 0 {
		_, _ = fmt.Fprintf(to, "the console's log ends with:\n%s\n", r.Log)
	}
	if _, err := fmt.Fprintln(to, r.line(problems)); err != nil {
		return fmt.Errorf("console: print: %w", err)
	}
	return nil
}

// line is the last line.
func (r *Report) line(problems []string) *figures.Line {
	line := figures.New("proof-console")
	line.Addf("chromium", "%s", r.Chromium)
	line.Addf("pages", "%d", r.Pages)
	line.Addf("without_scripts", "%d", len(r.Plain))
	line.Addf("looks", "%d", len(r.Shop))
	dialogs, reports, errors, serious, wide := 0, 0, 0, 0, 0
	for _, v := range slices.Concat(r.Shop, r.Others, r.Injections.Visits) {
		dialogs, reports = dialogs+len(v.Seen.Dialogs), reports+len(v.Seen.CSP)
		if v.Status < 400 {
			errors += len(v.Seen.Errors)
		}
		for _, fault := range v.Faults {
			if fault.Impact == "serious" || fault.Impact == "critical" {
				serious++
			}
		}
		if v.Window == phoneWidth && v.Width > phoneWidth {
			wide++
		}
	}
	j := &r.Injections
	line.Addf("hostile_pages", "%d", len(j.Visits))
	line.Addf("strings", "%d", j.Strings)
	line.Addf("strings_found", "%d", j.StringsFound)
	line.Addf("fields", "%d", j.Fields)
	line.Addf("fields_found", "%d", j.FieldsFound)
	line.Addf("texts_found", "%d", j.TextsFound)
	line.Addf("dialogs", "%d", dialogs)
	line.Addf("csp_reports", "%d", reports)
	line.Addf("control_dialogs", "%d", j.ControlDialogs)
	line.Addf("control_reports", "%d", j.ControlReports)
	line.Addf("console_errors", "%d", errors)
	line.Addf("axe_serious", "%d", serious)
	line.Addf("too_wide", "%d", wide)
	shift := 0.0
	for _, one := range r.Refresh.Shifts {
		shift = max(shift, one)
	}
	line.Addf("refreshed", "%d", r.Refresh.Refreshed)
	line.Addf("shift", "%.3f", shift)
	line.Addf("hidden_rereads", "%d", r.Refresh.Hidden)
	line.Addf("paused_rereads", "%d", r.Refresh.Paused)
	worst, took := r.slowest()
	line.Addf("paint_ms", "%.0f", took)
	line.Addf("paint_worst", "%s", worst)
	line.Addf("verbs", "%d", len(r.Verbs))
	r.Story.figures(line)
	line.Addf("seconds", "%.0f", r.Seconds)
	line.Addf("missed", "%d", len(problems))
	line.Addf("ok", "%t", len(problems) == 0)
	return line
}
