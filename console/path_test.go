package console

import (
	"context"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/posthaste-dev/posthaste/console/access"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// noDatabase is for pages that are rendered from facts.
type noDatabase struct{}

var errNoDatabase = errors.New("there is none")

func (noDatabase) BeginTx(context.Context, pgx.TxOptions) (pgx.Tx, error) { return nil, errNoDatabase }

func (noDatabase) Exec(context.Context, string, ...any) (pgconn.CommandTag, error) {
	return pgconn.CommandTag{}, errNoDatabase
}

// render makes a page of data, without a database.
func render(t *testing.T, name string, data any) string {
	t.Helper()
	c, err := New(Config{Outboxes: []Outbox{{Name: "shop", DB: noDatabase{}}}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	q := &request{
		Request: httptest.NewRequestWithContext(t.Context(), get, "/o/shop/"+name, nil), w: w, console: c,
		outbox: c.outboxes[0], user: access.User{Name: "vera", Role: access.Viewer},
		entry: entry{Entry: Entry{Name: name, Role: access.Viewer}}, now: time.Now(),
	}
	if err := q.ok(name, name, 3, data); err != nil || w.Code != 200 {
		t.Fatalf("status %d, %v: %s", w.Code, err, w.Body)
	}
	return w.Body.String()
}

// healthyPath is a large outbox in which nothing is wrong: 64 lanes, 16 relays and 200 topics.
func healthyPath() *pathFacts {
	f := &pathFacts{now: time.Now(), status: &operator.Status{}, in: 1000, out: 990}
	for i := range 16 {
		relay := operator.Relay{ID: fmt.Sprint(i), Name: fmt.Sprintf("relay-%d", i), State: operator.RelayAlive}
		for lane := 4*i + 1; lane <= 4*i+4; lane++ {
			relay.Lanes = append(relay.Lanes, int16(lane))
			f.lanes = append(f.lanes, laneOf(operator.Lane{Number: lane, Held: true, Relay: relay.ID, RelayName: relay.Name}))
		}
		f.relays = append(f.relays, relay)
	}
	for i := range 200 {
		f.topics = append(f.topics, topicLine{Topic: operator.Topic{Name: fmt.Sprintf("topic-%d", i)}, Out: float64(i)})
	}
	return f
}

// pathFault breaks something, and names what must be red for it.
type pathFault struct {
	name   string
	breaks func(*pathFacts)
	red    []string
}

const hostileName = `a/b "c" <img src=x onerror=alert(1)> 'd' & data-fault="e`

func pathFaults() []pathFault {
	since := func(f *pathFacts, ago time.Duration) *time.Time { at := f.now.Add(-ago); return &at }
	fail := func(t *topicLine) {
		t.Failing = []operator.TopicFailure{{RelayName: "relay-1", Error: "no such <topic>"}}
	}
	return []pathFault{
		{"a lane that is free", func(f *pathFacts) { f.lanes[6] = laneOf(operator.Lane{Number: 7}) }, []string{"lane:7"}},
		{"a relay that died", func(f *pathFacts) {
			f.relays[15].State = operator.RelayDead
			for lane := 61; lane <= 64; lane++ {
				f.lanes[lane-1] = laneOf(operator.Lane{Number: lane, Relay: "15", RelayName: "relay-15"})
			}
		}, []string{"relay:relay-15", "lane:61", "lane:62", "lane:63", "lane:64"}},
		{"a topic that fails", func(f *pathFacts) { fail(&f.topics[150]) }, []string{"topic:topic-150"}},
		{"a topic with a hostile name that fails and is paused", func(f *pathFacts) {
			f.topics[199].Name = hostileName
			fail(&f.topics[199])
			f.topics[199].Paused = []operator.Pause{{Scope: operator.TopicScope(hostileName), Actor: hostileName}}
		}, []string{"topic:" + hostileName}},
		{"two blocked aggregates", func(f *pathFacts) {
			f.status.BlockedAggregates, f.status.Dead.Events = 30, 31
			f.blocking = []operator.Event{
				{ID: outbox.NewID(), AggregateType: "order", AggregateID: "1"},
				{ID: outbox.NewID(), AggregateType: "order", AggregateID: "1"},
				{ID: outbox.NewID(), AggregateType: "order", AggregateID: hostileName},
			}
		}, []string{"aggregate:order/1", "aggregate:order/" + hostileName, "dead"}},
		{"a transaction that does not end", func(f *pathFacts) {
			f.writers = []operator.OpenWriter{
				{PID: 7, Role: hostileName, Since: since(f, time.Hour)},
				{PID: 8, Since: since(f, 30*time.Second)},
				{PID: 9, Since: since(f, time.Millisecond)},
				{PID: 10},
				{Prepared: hostileName, Since: since(f, time.Hour)},
			}
		}, []string{"writer:pid 7", "writer:prepared " + hostileName}},
	}
}

// amber is what somebody has decided, or should look at: none of it is red.
func amber(f *pathFacts) {
	f.lanes[0] = laneOf(operator.Lane{
		Number: 1, Held: true, Relay: "0", RelayName: "relay-0", Crashes: 2, MarkedEvent: "x",
	})
	f.lanes[1] = laneOf(operator.Lane{Number: 2, Held: true, Relay: "0", RelayName: "relay-0", Needs: []string{"mail"}})
	f.topics[0].Paused = []operator.Pause{{Scope: operator.TopicScope("topic-0"), Actor: "ann", Reason: "it moves"}}
	f.topics[1].Paused = []operator.Pause{{Scope: operator.TypeScope("mail"), Actor: "ann", Reason: "it moves"}}
	f.topics[2].Limit = &operator.Limit{Topic: "topic-2", Rate: 5, Actor: "ann", Reason: "they come back slowly"}
	f.relays[14].Lanes = nil
	f.pauses = []operator.Pause{{Scope: operator.AllScope, Actor: "ann", Reason: "at night"}}
}

var (
	tagOf   = regexp.MustCompile(`<[a-z]+[^>]*>`)
	faultOf = regexp.MustCompile(` data-fault="([^"]*)"`)
	classAt = regexp.MustCompile(`class="([^"]*)"`)
)

// redIn is what a picture marks as red, by name. What looks red and has no name, or the other way round, is an error.
func redIn(t *testing.T, page string) (red []string) {
	t.Helper()
	_, picture, ok := strings.Cut(page, `<div class="flow`)
	if !ok {
		t.Fatal("the page has no picture")
	}
	for _, tag := range tagOf.FindAllString(picture, -1) {
		class := classAt.FindStringSubmatch(tag)
		looksRed := class != nil && slices.Contains(strings.Fields(class[1]), "bad")
		fault := faultOf.FindStringSubmatch(tag)
		if looksRed != (fault != nil) {
			t.Errorf("red without a name, or a name without red: %s", tag)
		}
		if fault != nil {
			red = append(red, html.UnescapeString(fault[1]))
		}
	}
	slices.Sort(red)
	return red
}

func checkRed(t *testing.T, f *pathFacts, want ...string) string {
	t.Helper()
	page := render(t, "path", pathOf(f))
	slices.Sort(want)
	if got := redIn(t, page); !slices.Equal(got, want) {
		t.Errorf("red is %q, want %q", got, want)
	}
	for part, cells := range map[string]int{
		`aria-label="Lanes"`: 64, `aria-label="Relays, each with how many lanes it holds"`: 16, `aria-label="Topics"`: 200,
	} {
		_, list, _ := strings.Cut(page, part)
		list, _, _ = strings.Cut(list, "</ul>")
		if got := strings.Count(list, "<li"); got != cells {
			t.Errorf("%s has %d cells, want %d", part, got, cells)
		}
	}
	if strings.Contains(page, "<img src=x") {
		t.Error("a name became a tag")
	}
	return page
}

// TestPathIsRightWhenLarge: with 64 lanes, 16 relays and 200 topics, what is red is what is broken, and nothing else:
// nothing, each fault by itself, all at once, and beside what is amber.
func TestPathIsRightWhenLarge(t *testing.T) {
	t.Parallel()
	page := checkRed(t, healthyPath())
	if !strings.Contains(page, "Everything flows.") {
		t.Error("it does not say that everything flows")
	}
	all := healthyPath()
	amber(all)
	page = checkRed(t, all)
	if !strings.Contains(page, "Nothing is broken.") || strings.Count(page, `<li class="warn"`) != 5 {
		t.Errorf("what is amber is not: %s", page)
	}
	var red []string
	for _, fault := range pathFaults() {
		alone := healthyPath()
		fault.breaks(alone)
		page := checkRed(t, alone, fault.red...)
		if !strings.Contains(page, `<p class="sentence bad">`) {
			t.Errorf("%s: the sentence is not red", fault.name)
		}
		fault.breaks(all)
		red = append(red, fault.red...)
	}
	checkRed(t, all, red...)
}

// TestPathWithoutRelays: that nothing is published is said once more above the lanes, all of which are red.
func TestPathWithoutRelays(t *testing.T) {
	t.Parallel()
	f := healthyPath()
	want := []string{"relays"}
	f.relays = nil
	for i := range f.lanes {
		f.lanes[i] = laneOf(operator.Lane{Number: i + 1})
		want = append(want, fmt.Sprintf("lane:%d", i+1))
	}
	slices.Sort(want)
	if got := redIn(t, render(t, "path", pathOf(f))); !slices.Equal(got, want) {
		t.Errorf("red is %q, want %q", got, want)
	}
	f = healthyPath()
	f.restored = true
	if got := redIn(t, render(t, "path", pathOf(f))); !slices.Equal(got, []string{"restored"}) {
		t.Errorf("red is %q", got)
	}
}
