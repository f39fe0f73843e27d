package console

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/relay/operator"
)

// The size of a chart in its own units; the page stretches it.
const (
	chartWidth  = 600.0
	chartHeight = 140.0
	mostPoints  = 180 // more are put together
)

// chart is lines over the same time. What it says in figures stands beside it as text: it is read without the picture.
type chart struct {
	Title    string
	Lines    []chartLine
	Most     string // the value of the upper edge
	From, To time.Time
	Empty    bool
}

type chartLine struct {
	Number int // of its color
	Name   string
	Last   string
	Path   string
}

// series is one line's values; NaN where nothing is known.
type series struct {
	name   string
	values []float64
}

// draw makes a chart whose upper edge is the highest value.
func draw(title string, minutes []operator.Minute, unit func(float64) string, lines ...series) chart {
	c := chart{Title: title, Empty: true}
	if len(minutes) == 0 {
		return c
	}
	c.From, c.To = minutes[0].At, minutes[len(minutes)-1].At
	highest := 0.0
	for _, line := range lines {
		for _, v := range line.values {
			if !math.IsNaN(v) {
				c.Empty = false
				highest = max(highest, v)
			}
		}
	}
	c.Most = unit(highest)
	for i, line := range lines {
		last := "not known"
		if v := line.values[len(line.values)-1]; !math.IsNaN(v) {
			last = unit(v)
		}
		c.Lines = append(c.Lines, chartLine{i + 1, line.name, last, path(line.values, highest)})
	}
	return c
}

// path is a line as SVG has it. Where a value is not known it is interrupted.
func path(values []float64, highest float64) string {
	var out strings.Builder
	command := "M"
	step := chartWidth / float64(max(len(values)-1, 1))
	for i, v := range values {
		if math.IsNaN(v) {
			command = "M"
			continue
		}
		y := chartHeight - 2
		if highest > 0 {
			y -= v / highest * (chartHeight - 6)
		}
		fmt.Fprintf(&out, "%s%.1f %.1f", command, float64(i)*step, y)
		if command == "M" {
			fmt.Fprintf(&out, "h0.1") // a single point is seen too
		}
		command = "L"
	}
	return out.String()
}

// thin puts minutes together until a chart has no more points than can be seen. How many minutes each point is of, it
// tells as well; the oldest minutes, of which there are too few for one, are left out.
func thin(minutes []operator.Minute) (points []operator.Minute, each int) {
	each = (len(minutes) + mostPoints - 1) / mostPoints
	if each <= 1 {
		return minutes, 1
	}
	for at := len(minutes) % each; at < len(minutes); at += each {
		points = append(points, together(minutes[at:at+each]))
	}
	return points, each
}

func together(minutes []operator.Minute) operator.Minute {
	sum := operator.Minute{At: minutes[0].At}
	for _, m := range minutes {
		sum.Arrived += m.Arrived
		sum.Published += m.Published
		sum.Died += m.Died
		sum.Rejected += m.Rejected
		sum.Terminal += m.Terminal
		sum.TopicFault += m.TopicFault
		sum.Unknown += m.Unknown
		for i, n := range m.Latencies {
			if i >= len(sum.Latencies) {
				sum.Latencies = append(sum.Latencies, 0)
			}
			sum.Latencies[i] += n
		}
		if m.Pending != nil {
			sum.Pending, sum.Oldest = m.Pending, m.Oldest
		}
	}
	return sum
}

// valuesOf is one value per minute.
func valuesOf(name string, minutes []operator.Minute, value func(*operator.Minute) float64) series {
	s := series{name: name}
	for i := range minutes {
		s.values = append(s.values, value(&minutes[i]))
	}
	return s
}
