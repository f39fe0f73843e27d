package check

import (
	"fmt"
	"strconv"
	"strings"
)

// Nagios is the result as its plugins print it: one line with the state, what is wrong and the numbers with their
// limits, and a line for each that is wrong.
func (r Result) Nagios() string {
	var wrong, numbers []string
	for _, check := range r.Checks {
		if check.State != OK {
			wrong = append(wrong, strings.ToUpper(check.State.String())+": "+onOneLine(check.Text))
		}
		if check.Name != "schema" {
			numbers = append(numbers, check.perfdata())
		}
	}
	summary := "all is well"
	if len(wrong) > 0 {
		summary = strings.Join(wrong, "; ")
	}
	line := "OUTBOX " + strings.ToUpper(r.State.String()) + " - " + summary
	if len(numbers) > 0 {
		line += " | " + strings.Join(numbers, " ")
	}
	return line + "\n"
}

// perfdata is name=value;warn;crit;min, as Nagios prescribes it.
func (c Check) perfdata() string {
	limit := func(value float64) string {
		switch {
		case value == None:
			return ""
		case c.AtLeast:
			return number(value) + ":"
		}
		return number(value)
	}
	value := number(c.Value)
	if c.State == Unknown {
		value = "U"
	}
	return fmt.Sprintf("%s=%s%s;%s;%s;0", c.Name, value, c.Unit, limit(c.Warn), limit(c.Crit))
}

// onOneLine is a text that cannot end the line, nor begin the numbers.
func onOneLine(text string) string {
	return strings.NewReplacer("\n", " ", "\r", " ", "|", "/").Replace(text)
}

func number(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }

// Prometheus is the result in its text format, for instance for node_exporter's textfile collector.
func (r Result) Prometheus() string {
	var text strings.Builder
	text.WriteString("# HELP posthaste_check_state How a check stands: 0 ok, 1 warning, 2 critical, 3 unknown.\n" +
		"# TYPE posthaste_check_state gauge\n")
	for _, check := range r.Checks {
		fmt.Fprintf(&text, "posthaste_check_state{check=%q} %d\n", check.Name, check.State)
	}
	text.WriteString("# HELP posthaste_check_value What a check has found; ages are in seconds.\n" +
		"# TYPE posthaste_check_value gauge\n")
	for _, check := range r.Checks {
		if check.State != Unknown {
			fmt.Fprintf(&text, "posthaste_check_value{check=%q} %s\n", check.Name, number(check.Value))
		}
	}
	fmt.Fprintf(&text, "# HELP posthaste_check_worst_state The worst of all checks.\n"+
		"# TYPE posthaste_check_worst_state gauge\nposthaste_check_worst_state %d\n", r.State)
	return text.String()
}
