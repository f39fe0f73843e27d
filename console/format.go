package console

import (
	"fmt"
	"html/template"
	"maps"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/internal/span"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// functions are those of all templates.
func (c *Console) functions() template.FuncMap {
	all := template.FuncMap{
		"num":     number,
		"rate":    rate,
		"age":     age,
		"stamp":   func(at any) string { return stamp(timeOf(at)) },
		"class":   classOf,
		"counted": counted,
		"cut":     cut,
		"join":    strings.Join,
		"words":   func(text any) string { return strings.ReplaceAll(fmt.Sprint(text), "_", " ") },
		"title": func(text any) string {
			word := fmt.Sprint(text)
			return strings.ToUpper(word[:min(1, len(word))]) + word[min(1, len(word)):]
		},
		"rows": func(p *page, events []operator.Event) map[string]any {
			return map[string]any{"Page": p, "Rows": events}
		},
	}
	maps.Copy(all, systemFunctions())
	return all
}

// number writes a whole number with separators.
func number(n any) string {
	switch is := n.(type) {
	case float64:
		n = int64(math.Round(is))
	case *int64:
		if is == nil {
			return ""
		}
		n = *is
	}
	text := fmt.Sprint(n)
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return sign + text
}

// rate writes events per second.
func rate(perSecond float64) string {
	switch {
	case perSecond == 0:
		return "0"
	case perSecond < 10:
		return strconv.FormatFloat(perSecond, 'f', 1, 64)
	default:
		return number(int64(perSecond + 0.5))
	}
}

// age writes seconds as people say them.
func age(seconds any) string {
	switch s := seconds.(type) {
	case float64:
		return span.Of(time.Duration(s * float64(time.Second)))
	case *float64:
		if s == nil {
			return "not known"
		}
		return age(*s)
	case time.Duration:
		return span.Of(s)
	}
	return ""
}

func ago(at, now time.Time) string {
	switch {
	case at.IsZero():
		return ""
	case at.After(now.Add(-time.Second)) && at.Before(now.Add(time.Second)):
		return "just now"
	case at.After(now):
		return "in " + span.Of(at.Sub(now))
	default:
		return span.Of(now.Sub(at)) + " ago"
	}
}

func stamp(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format("2006-01-02 15:04:05.000 UTC")
}

// classOf is how a state, a health or the state of a job looks.
func classOf(state any) string {
	switch fmt.Sprint(state) {
	case "published", "done", string(operator.Healthy), "alive":
		return "good"
	case "ready", "running", "discarded", "canceled", "ended", operator.StateDeleted:
		return "plain"
	case "retrying", "waiting", "parked", "paused", string(operator.Degraded):
		return "warn"
	default:
		return "bad"
	}
}

// cut shortens a text for a table. The whole of it is elsewhere.
func cut(most int, text string) string {
	letters := []rune(text)
	if len(letters) <= most {
		return text
	}
	return string(letters[:most-1]) + "…"
}

// counted says how many of something there are.
func counted(n any, one, several string) string {
	if number(n) == "1" {
		return "1 " + one
	}
	return number(n) + " " + several
}
