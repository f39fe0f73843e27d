package operator

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/internal/clean"
)

// A Problem is what went wrong in the same way: with events of one type, on one topic, in the same words but for
// numbers, ids and names.
type Problem struct {
	EventType string `json:"type,omitempty"` // empty: it is about the whole topic
	Topic     string `json:"topic,omitempty"`
	// Class is rejected, terminal, topic_fault or unknown, of events that are tried again; "dead: " and the reason, of
	// dead ones; paused, of a topic that a relay has paused.
	Class  string    `json:"class"`
	Error  string    `json:"error"`
	Count  int64     `json:"count"` // attempts, or dead letters
	Events int64     `json:"events"`
	First  time.Time `json:"firstSeen"`
	Last   time.Time `json:"lastSeen"`
	// Example is one of the events, for outboxctl events explain.
	Example string `json:"example,omitempty"`
}

// Problems is what was found, and where it was looked for.
type Problems struct {
	Problems []Problem `json:"problems"`
	// Letters and Attempts are how many rows were looked at, the newest of each. Complete tells that these were all.
	Letters  int64 `json:"lettersLookedAt"`
	Attempts int64 `json:"attemptsLookedAt"`
	Complete bool  `json:"complete"`
}

const (
	problemsWindow = 10_000
	mostProblems   = 2_000
)

// Problems groups what goes wrong: attempts that failed, dead letters that nobody has resolved, topics that are paused
// by their breaker. It looks at the newest 10,000 attempts and dead letters.
func (o *Operator) Problems(ctx context.Context) (*Problems, error) {
	found := &Problems{Complete: true}
	groups := map[Problem]*Problem{}
	err := o.look(ctx, "problems", func(l *looking) error {
		rows, err := l.Query(ctx, l.sql("problems"), problemsWindow, mostProblems)
		if err != nil {
			return err //nolint:wrapcheck // look says what it was
		}
		defer rows.Close()
		for rows.Next() {
			var p Problem
			if err := rows.Scan(&p.EventType, &p.Topic, &p.Class, &p.Error, &p.Count, &p.Events, &p.First, &p.Last,
				&p.Example, &found.Letters, &found.Attempts); err != nil {
				return err //nolint:wrapcheck // look says what it was
			}
			merge(groups, p)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, err
	}
	topics, err := o.Topics(ctx)
	if err != nil {
		return nil, err
	}
	for i := range topics {
		for _, failure := range topics[i].Failing {
			merge(groups, Problem{
				Topic: topics[i].Name, Class: "paused", Error: failure.Error, Count: 1,
				First: failure.Since, Last: failure.Since,
			})
		}
	}
	found.Complete = found.Letters < problemsWindow && found.Attempts < problemsWindow && len(groups) < mostProblems
	for _, p := range groups {
		found.Problems = append(found.Problems, *p)
	}
	slices.SortFunc(found.Problems, func(a, b Problem) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.EventType, b.EventType), cmp.Compare(a.Error, b.Error))
	})
	return found, nil
}

// merge adds a problem to those that are the same but for numbers.
func merge(groups map[Problem]*Problem, p Problem) {
	p.Error = Normalize(p.Error)
	key := Problem{EventType: p.EventType, Topic: p.Topic, Class: p.Class, Error: p.Error}
	have := groups[key]
	if have == nil {
		groups[key] = &p
		return
	}
	have.Count, have.Events = have.Count+p.Count, have.Events+p.Events
	if p.First.Before(have.First) {
		have.First = p.First
	}
	if p.Last.After(have.Last) {
		have.Last, have.Example = p.Last, p.Example
	}
}

// What differs between two errors that are the same.
var (
	idPattern     = regexp.MustCompile(`(?i)\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b(0x)?[0-9a-f]{16,}\b`)
	quotedPattern = regexp.MustCompile(`"[^"]*"|'[^']*'|` + "`[^`]*`")
	numberPattern = regexp.MustCompile(`\d+([.:,]\d+)*`)
)

// Normalize takes from an error what differs between two that are the same: ids, numbers, times, and what is quoted.
func Normalize(text string) string {
	text = idPattern.ReplaceAllString(clean.Line(text), "<id>")
	text = quotedPattern.ReplaceAllString(text, "<text>")
	return numberPattern.ReplaceAllString(text, "<n>")
}
