package operator

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

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
	Count  int64     `json:"count"`  // attempts, or dead letters
	Events int64     `json:"events"` // that they are of
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

const problemsWindow = 10_000

// gathered is what was found, by what tells problems apart.
type gathered map[Problem]*group

// group is a problem with the events that have it.
type group struct {
	Problem

	events map[string]bool
}

// Problems groups what goes wrong: attempts that failed, dead letters that nobody has resolved, topics that are paused
// by their breaker. It looks at the newest 10,000 attempts and dead letters.
func (o *Operator) Problems(ctx context.Context) (*Problems, error) {
	found := &Problems{Problems: []Problem{}}
	groups := gathered{}
	if err := o.look(ctx, "problems", func(l *looking) error { return found.read(ctx, l, groups) }); err != nil {
		return nil, err
	}
	topics, err := o.Topics(ctx)
	if err != nil {
		return nil, err
	}
	for i := range topics {
		for _, failure := range topics[i].Failing {
			groups.add(Problem{
				Topic: topics[i].Name, Class: "paused", Error: failure.Error, Count: 1,
				First: failure.Since, Last: failure.Since,
			}, nil)
		}
	}
	found.Complete = found.Letters < problemsWindow && found.Attempts < problemsWindow
	for _, have := range groups {
		have.Events = int64(len(have.events))
		found.Problems = append(found.Problems, have.Problem)
	}
	slices.SortFunc(found.Problems, func(a, b Problem) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.EventType, b.EventType), cmp.Compare(a.Error, b.Error))
	})
	return found, nil
}

// read looks at the newest dead letters and attempts.
func (p *Problems) read(ctx context.Context, l *looking, groups gathered) error {
	rows, err := l.Query(ctx, l.sql("problems"), problemsWindow)
	if err != nil {
		return err //nolint:wrapcheck // look says what it was
	}
	var eventType, topic, class, text, example *string
	var count *int64
	var first, last *time.Time
	var events []string
	_, err = pgx.ForEachRow(rows, []any{
		&p.Letters, &p.Attempts, &eventType, &topic, &class, &text, &count, &events, &first, &last, &example,
	}, func() error {
		if eventType != nil { // else there is none
			groups.add(Problem{
				EventType: *eventType, Topic: *topic, Class: *class, Error: *text, Count: *count, First: *first, Last: *last,
				Example: *example,
			}, events)
		}
		return nil
	})
	return err //nolint:wrapcheck // look says what it was
}

// add adds a problem to those that are the same but for numbers. An event may have it several times.
func (g gathered) add(p Problem, events []string) {
	p.Error = Normalize(p.Error)
	key := Problem{EventType: p.EventType, Topic: p.Topic, Class: p.Class, Error: p.Error}
	have := g[key]
	if have == nil {
		have = &group{Problem: p, events: map[string]bool{}}
		g[key] = have
	} else {
		have.Count += p.Count
		if p.First.Before(have.First) {
			have.First = p.First
		}
		if p.Last.After(have.Last) {
			have.Last, have.Example = p.Last, p.Example
		}
	}
	for _, id := range events {
		have.events[id] = true
	}
}

// What differs between two errors that are the same.
var (
	idPattern = regexp.MustCompile(`(?i)\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b(0x)?[0-9a-f]{16,}\b`)
	// An apostrophe within a word, as in can't, begins and ends no quote.
	quotedPattern = regexp.MustCompile(`"[^"]*"|\B'.*?'\B|` + "`[^`]*`")
	numberPattern = regexp.MustCompile(`\d+([.:,]\d+)*`)
)

// Normalize takes from an error what differs between two that are the same: ids, numbers, times, and what is quoted.
func Normalize(text string) string {
	text = idPattern.ReplaceAllString(clean.Line(text), "<id>")
	text = quotedPattern.ReplaceAllString(text, "<text>")
	return numberPattern.ReplaceAllString(text, "<n>")
}
