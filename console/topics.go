package console

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/posthaste-dev/posthaste/relay/operator"
)

// topicsScreen is what the screen of topics has.
type topicsScreen struct {
	Notice orderNotice
	Says   string
	Bad    bool
	Topics []topicLine
	// Pauses are of everything and of types; those of topics stand with them.
	Pauses []operator.Pause
	// AllPaused tells that everything is paused already.
	AllPaused bool
	// Minutes is how many the rates are of.
	Minutes int
	One     *oneTopic
	// Unknown is a topic that was asked for and that nobody knows.
	Unknown string
}

// oneTopic is what is shown of a topic by itself.
type oneTopic struct {
	topicLine
	// TypesPaused are those of its types that are paused by themselves.
	TypesPaused map[string]bool
	Charts      []chart
	Ranges      []chartRange
	Each        int
}

func (q *request) topicsPage() error {
	minutes, err := q.number("minutes", 60, 5, operator.MaxMinutes)
	if err != nil {
		return err
	}
	lines, status, pauses, err := q.topicLines()
	if err != nil {
		return err
	}
	screen := &topicsScreen{Notice: orderNoticeOf(q.text("did")), Topics: lines}
	for _, pause := range pauses {
		if pause.Kind != operator.TopicScope("").Kind {
			screen.Pauses = append(screen.Pauses, pause)
		}
		screen.AllPaused = screen.AllPaused || pause.Scope == operator.AllScope
	}
	for _, t := range status.Topics {
		screen.Minutes = max(screen.Minutes, t.Minutes)
	}
	screen.Says, screen.Bad = topicsSentence(lines, screen.AllPaused)
	if name := q.form.Get("topic"); name != "" {
		if screen.One, err = q.oneTopic(name, lines, pauses, minutes); err != nil {
			return err
		}
		if screen.One == nil {
			screen.Unknown = name
		}
	}
	title := "Topics"
	if screen.One != nil {
		title = "Topic " + screen.One.Name
	}
	return q.ok("topics", title, 5, screen)
}

// topicLines are the topics with what they carried, as the status of the outbox has it, and what is paused.
func (q *request) topicLines() (lines []topicLine, status *operator.Status, pauses []operator.Pause, err error) {
	var topics []operator.Topic
	ctx, of := q.Context(), q.outbox
	if err := sideBySide(
		func() (err error) { status, err = of.statusNow(ctx); return err },
		func() (err error) { topics, err = of.topics.get(ctx, "", of.op.Topics); return err },
		func() (err error) { pauses, err = of.system.pauses.get(ctx, "", of.op.Pauses); return err },
	); err != nil {
		return nil, nil, nil, err
	}
	lines = topicLines(topics, status.Topics)
	slices.SortStableFunc(lines, func(a, b topicLine) int { // what fails is before what people have decided
		return cmp.Compare(min(len(b.Failing), 1), min(len(a.Failing), 1))
	})
	return lines, status, pauses, nil
}

// oneTopic is a topic with its types and charts; nil where nobody knows it.
func (q *request) oneTopic(name string, lines []topicLine, pauses []operator.Pause, minutes int64) (*oneTopic, error) {
	one := &oneTopic{TypesPaused: map[string]bool{}, Ranges: rangesOf(minutes)}
	found := false
	for _, line := range lines {
		if line.Name == name {
			one.topicLine, found = line, true
		}
	}
	if !found {
		return nil, nil //nolint:nilnil // that nobody knows it is an answer
	}
	for _, pause := range pauses {
		if pause.Scope == operator.TypeScope(pause.Name) {
			one.TypesPaused[pause.Name] = true
		}
	}
	all, err := q.outbox.series.get(q.Context(), strconv.FormatInt(minutes, 10)+" "+name,
		func(ctx context.Context) ([]operator.Minute, error) {
			return q.outbox.op.Series(ctx, int(minutes), name)
		})
	if err != nil {
		return nil, err
	}
	points, each := thin(all)
	one.Charts, one.Each = chartsOf(points, each), each
	return one, nil
}

// PausedByName tells that a topic is paused by itself, which is what a resume of it ends.
func (l topicLine) PausedByName() bool {
	return slices.ContainsFunc(l.Paused, func(p operator.Pause) bool { return p.Scope == operator.TopicScope(l.Name) })
}

// topicsSentence says what is wrong with the topics, and tells whether it is more than what people have decided.
func topicsSentence(lines []topicLine, allPaused bool) (says string, bad bool) {
	var failing, paused, limited int
	for _, line := range lines {
		switch {
		case len(line.Failing) > 0:
			failing++
		case len(line.Paused) > 0:
			paused++
		case line.Limit != nil:
			limited++
		}
	}
	var parts []string
	for _, part := range []struct {
		n    int
		text string
	}{{failing, "failing"}, {paused, "paused"}, {limited, "limited"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", number(part.n), part.text))
		}
	}
	switch {
	case allPaused:
		return "Everything is paused: the relays publish nothing until somebody resumes it.", true
	case len(lines) == 0:
		return "No relay has said yet where it publishes to.", false
	case len(parts) == 0:
		return "All is well with " + counted(len(lines), "topic.", "topics."), false
	}
	return fmt.Sprintf("Of %s: %s.", counted(len(lines), "topic", "topics"), strings.Join(parts, ", ")), failing > 0
}
