package console

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/internal/span"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// pathFacts is what the picture of the path is made of.
type pathFacts struct {
	now    time.Time
	status *operator.Status
	// in and out are events per second in the last minute that relays have written down.
	in, out  float64
	relays   []operator.Relay
	lanes    []laneLine
	topics   []topicLine
	pauses   []operator.Pause
	blocking []operator.Event // dead ones that block, the newest first
	writers  []operator.OpenWriter
	restored bool
}

// pathModel is the picture: what comes in, the lanes, and the topics. What is red has a name in Fault, and nothing else
// has one.
type pathModel struct {
	Says        string
	Class       string
	Status      *operator.Status
	In, Out     string
	Writers     []cell
	OpenWriters int
	Dead        cell
	Blocked     []cell
	MoreBlocked int64
	Lanes       []cell
	Relays      []cell
	// Stops are what keeps everything from being published.
	Stops  []cell
	Topics []cell
	// Many tells that there are more topics than fit beside the lanes.
	Many bool
}

// cell is one thing in the picture.
type cell struct {
	// Name is what it is, Note what stands behind it, Why what is wrong with it; empty: nothing.
	Name, Note, Why string
	// Class is good, plain, warn or bad, Fault what is red in one word.
	Class, Fault string
	// Type and ID are of an aggregate.
	Type, ID string
}

// The bounds of the picture.
const (
	mostBlocked = 12               // aggregates that are named
	mostBeside  = 40               // topics that fit beside the lanes
	longOpen    = 10 * time.Second // from then on an open writer is worth a look
	tooLongOpen = time.Minute      // from then on it is a fault, as it is for events that wait
)

func pathOf(f *pathFacts) *pathModel {
	m := &pathModel{
		Status: f.status, In: rate(f.in), Out: rate(f.out), OpenWriters: len(f.writers), Writers: writerCells(f),
		Lanes: laneCells(f.lanes), Relays: relayCells(f.relays), Topics: topicCells(f.topics), Stops: stopCells(f),
		Many: len(f.topics) > mostBeside,
	}
	m.Blocked = blockedCells(f.blocking)
	m.MoreBlocked = max(0, f.status.BlockedAggregates-int64(len(m.Blocked)))
	m.Dead = cell{Name: many(f.status.Dead), Class: "plain"}
	if f.status.Dead.Events > 0 {
		m.Dead.Class, m.Dead.Fault = "bad", "dead"
	}
	m.Says, m.Class = m.sentence()
	return m
}

// writerCells are the transactions that are open for long.
func writerCells(f *pathFacts) (cells []cell) {
	for _, w := range f.writers {
		if w.Since == nil || f.now.Sub(*w.Since) < longOpen {
			continue
		}
		name := "pid " + strconv.Itoa(w.PID)
		if w.Prepared != "" {
			name = "prepared " + w.Prepared
		}
		known := slices.DeleteFunc([]string{w.Role, w.Application, w.State}, func(s string) bool { return s == "" })
		who := strings.Join(known, ", ")
		age := f.now.Sub(*w.Since)
		c := cell{Name: name, Note: span.Of(age), Why: "open for " + span.Of(age) + ": " + who, Class: "warn"}
		if age >= tooLongOpen {
			c.Class, c.Fault = "bad", "writer:"+name
		}
		cells = append(cells, c)
	}
	return cells
}

func blockedCells(blocking []operator.Event) (cells []cell) {
	seen := map[string]bool{}
	for _, e := range blocking {
		name := e.AggregateType + "/" + e.AggregateID
		if seen[name] || len(cells) == mostBlocked {
			continue
		}
		seen[name] = true
		cells = append(cells, cell{
			Name: name, Why: "blocked by a dead " + e.Type, Class: "bad", Fault: "aggregate:" + name, Type: e.AggregateType,
			ID: e.AggregateID,
		})
	}
	return cells
}

func laneCells(lanes []laneLine) (cells []cell) {
	for _, lane := range lanes {
		c := cell{Name: strconv.Itoa(lane.Number), Why: lane.Why, Note: lane.RelayName, Class: lane.Class}
		if c.Class == "bad" {
			c.Fault = "lane:" + c.Name
		}
		cells = append(cells, c)
	}
	return cells
}

// relayCells are those that are there, with how many lanes each holds.
func relayCells(relays []operator.Relay) (cells []cell) {
	for _, relay := range relays {
		c := cell{Name: relay.Name, Note: strconv.Itoa(len(relay.Lanes)), Class: "good"}
		switch {
		case relay.State == operator.RelayEnded:
			continue
		case relay.State == operator.RelayDead:
			c.Class, c.Why, c.Fault = "bad", "does not beat any more", "relay:"+relay.Name
		case len(relay.Lanes) == 0:
			c.Class, c.Why = "plain", "holds no lane"
		}
		cells = append(cells, c)
	}
	return cells
}

// topicCells are the topics, those that need somebody first.
func topicCells(topics []topicLine) (cells []cell) {
	for _, t := range topics {
		c := cell{Name: t.Name, Note: rate(t.Out) + "/s", Class: "good"}
		switch {
		case len(t.Failing) > 0:
			c.Class, c.Fault = "bad", "topic:"+t.Name
			c.Why = fmt.Sprintf("failing for %s: %s", relaysOf(len(t.Failing)), t.Failing[0].Error)
			c.Note = "failing"
		case len(t.Paused) > 0:
			c.Class, c.Why, c.Note = "warn", t.Paused[0].String(), "paused"
			if !pausedAsWhole(t) {
				c.Note = "a type paused"
			}
		case t.Limit != nil:
			c.Class, c.Why, c.Note = "warn", t.Limit.String(), c.Note+" of "+rate(t.Limit.Rate)
		}
		cells = append(cells, c)
	}
	ranks := map[string]int{"bad": 0, "warn": 1, "good": 2}
	slices.SortStableFunc(cells, func(a, b cell) int { return cmp.Compare(ranks[a.Class], ranks[b.Class]) })
	return cells
}

// pausedAsWhole tells whether nothing at all goes to a topic, and not only a type of it.
func pausedAsWhole(t topicLine) bool {
	return slices.ContainsFunc(t.Paused, func(p operator.Pause) bool {
		return p.Scope == operator.AllScope || p.Scope == operator.TopicScope(t.Name)
	})
}

func stopCells(f *pathFacts) (cells []cell) {
	if f.restored {
		cells = append(cells, cell{
			Name: "The relays take the database for restored or copied, and wait.", Class: "bad", Fault: "restored",
		})
	}
	alive := slices.ContainsFunc(f.relays, func(r operator.Relay) bool { return r.State == operator.RelayAlive })
	if !alive && !f.restored {
		cells = append(cells, cell{Name: "No relay is alive.", Class: "bad", Fault: "relays"})
	}
	for _, p := range f.pauses {
		if p.Scope == operator.AllScope {
			cells = append(cells, cell{Name: "Everything is paused by " + p.Actor + ": " + p.Reason, Class: "warn"})
		}
	}
	return cells
}

// sentence says the whole picture in one.
func (m *pathModel) sentence() (says, class string) {
	count := func(cells []cell, class string) (n int) {
		for _, c := range cells {
			if c.Class == class {
				n++
			}
		}
		return n
	}
	var bad []string
	add := func(n int64, one, several string) {
		if n > 0 {
			bad = append(bad, counted(n, one, several))
		}
	}
	for _, stop := range m.Stops {
		if stop.Class == "bad" {
			bad = append(bad, strings.ToLower(stop.Name[:1])+strings.TrimSuffix(stop.Name[1:], "."))
		}
	}
	add(int64(count(m.Lanes, "bad")), "lane is held by nobody", "lanes are held by nobody")
	add(int64(count(m.Relays, "bad")), "relay is dead", "relays are dead")
	add(int64(count(m.Topics, "bad")), "topic fails", "topics fail")
	add(max(m.Status.BlockedAggregates, int64(len(m.Blocked))), "aggregate is blocked", "aggregates are blocked")
	add(int64(count(m.Writers, "bad")), "transaction that writes events is open for long",
		"transactions that write events are open for long")
	if len(bad) == 0 && m.Status.Dead.Events > 0 {
		bad = append(bad, many(m.Status.Dead)+" dead")
	}
	if len(bad) > 0 {
		text := strings.Join(bad, "; ")
		return strings.ToUpper(text[:1]) + text[1:] + ".", "bad"
	}
	if n := count(m.Topics, "warn") + count(m.Lanes, "warn") + count(m.Writers, "warn") + count(m.Stops, "warn"); n > 0 {
		return "Nothing is broken. What is amber somebody has decided, or should look at.", "warn"
	}
	return "Everything flows.", "good"
}
