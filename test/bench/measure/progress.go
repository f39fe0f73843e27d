package bench

import (
	"fmt"
	"io"
	"time"
)

// Progress tells whoever waits what runs and how long it will still take.
type Progress struct {
	to    io.Writer
	name  string
	began time.Time
	total time.Duration // the planned work
	done  time.Duration
	said  time.Time
}

// NewProgress begins a run of this much planned work. The plan need not be right: the time left is
// scaled by how long the work took so far.
func NewProgress(to io.Writer, name string, planned time.Duration) *Progress {
	return &Progress{to: to, name: name, began: time.Now(), total: planned}
}

// Done counts planned work as done and says so, at most once in five seconds.
func (p *Progress) Done(work time.Duration, what string) {
	p.done += work
	if now := time.Now(); now.Sub(p.said) >= 5*time.Second {
		p.said = now
		_, _ = fmt.Fprintf(p.to, "%s: %s, about %s left\n", p.name, what, p.Left(now)) // of no consequence
	}
}

// Left is the estimate at this time.
func (p *Progress) Left(now time.Time) time.Duration {
	left := max(p.total-p.done, 0)
	if p.done > p.total/20 { // before, the pace says little
		left = time.Duration(float64(left) * float64(now.Sub(p.began)) / float64(p.done))
	}
	return left.Round(time.Second)
}
