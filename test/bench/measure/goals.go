package bench

import (
	"fmt"
	"io"
)

// Goals is the table of what the project wants to reach, beside what a run has measured of it.
type Goals struct {
	table *Table
}

// NewGoals begins one.
func NewGoals() *Goals { return &Goals{table: NewTable("figure", "goal", "measured", "reached")} }

// Add tells of one figure how it stands. The resolution is that of the run, 0 for what is counted.
func (g *Goals) Add(figure string, goal *Goal, measured, resolution float64) {
	sign := "<="
	if goal.AtLeast {
		sign = ">="
	}
	g.table.Add(figure, fmt.Sprintf("%s %.4g", sign, goal.Limit), fmt.Sprintf("%.3g", measured),
		string(goal.Assess(measured, resolution)))
}

// Print writes the table.
func (g *Goals) Print(to io.Writer) error { return g.table.Print(to, "Goals") }
