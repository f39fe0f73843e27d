package look

import "time"

// Plan is what a run does.
type Plan struct {
	URL    string // of the server
	Binary string // outboxctl
	Events int
	// Timed tells that times decide: every command within mostTime, the statements of the look-ups within mostLookup.
	// Otherwise pages do.
	Timed bool
	// Pairs of stretches are measured in which events flow, one while people look and one while nobody does. Each lasts
	// Length, after Settle. 0: nothing flows.
	Pairs          int
	Length, Settle time.Duration
	// Rest is how long consoles are left open while nothing flows. 0: they are not.
	Rest time.Duration
}

// Full is 10,000,000 events.
func Full() Plan {
	return Plan{
		Events: 10_000_000, Timed: true, Pairs: 5, Length: 40 * time.Second, Settle: 3 * time.Second, Rest: time.Minute,
	}
}

// Short is 500,000. What decides are pages, which depend on no machine.
func Short() Plan { return Plan{Events: 500_000} }

// The musts.
const (
	mostTime   = time.Second
	mostLookup = 100 * time.Millisecond
	runs       = 3 // of each command; the median counts
)

// A command is one that is measured. {published}, {dead}, {waiting}, {ready} and {missing} in its arguments are ids
// of events, {aggregate} is an aggregate of five events.
type command struct {
	name string
	args []string
	// path is a screen's, where there are no args.
	path string
	// pages is the most that its statements may look at, in the short form, and why what it is made of costs so much.
	pages int64
	why   string
	// most is how long it may take. Defaults to mostTime, and mostScreen of a screen.
	most time.Duration
	// lookup tells that it is one of the three that must be fast.
	lookup bool
	// exits are codes other than 0 that it may end with: those that tell what was found.
	exits []int
	// needs is an optional look-up without which it is not asked.
	needs string
}

// window is what a search costs that looks at the newest 50,000 events: ten are on a page, but the ids of events that
// were made in the same millisecond have no order, so that a walk by id goes back and forth between their pages. A walk
// over all events of the short form takes twice as many.
const window = 30_000

// What limits are made of.
const (
	whyIndex    = "a few ways down an index, and the rows"
	whyPage     = "one page of the list, each event by the index of ids, its topic, and whether it was erased"
	whyTail     = "five pages of the list, each of a thousand events"
	whyWindow   = "the newest 50,000 events are looked at, and no others"
	whyHeld     = "all that is held is looked at, each with its event: 5,300 times two ways down an index"
	whySurvey   = "the survey counts up to 10,000 that are ready, each of which may be on a page of its own"
	whyFleet    = "tables of relays and lanes, each lane with what its owner said last"
	whyCatalog  = "what the server knows of tables, columns, functions and roles, also of other databases' roles"
	whyEvent    = "the event by its id, its letters, actions and attempts, and who holds its lane"
	whyLine     = "up to 10,000 events of the lane from its floor on, as many before the event, and ten are on a page"
	whyLarge    = "up to 10,000 of the aggregate, the newest 10,000 of its lane, and ten are on a page"
	whyProblems = "up to 10,000 attempts and as many letters, each with its event or action: four pages each"
	whyLetters  = "up to 10,000 letters are looked at, each for an action that has resolved it: five pages each"
)

// commands are all that are measured, in this order. Those that need an optional look-up come last.
var commands = []command{
	{name: "list", args: []string{"events", "list"}, pages: 100, why: whyPage},
	{name: "status", args: []string{"status"}, pages: 10_000, why: whySurvey},
	{name: "top", args: []string{"top", "--count", "1"}, pages: 10_000, why: whySurvey},
	{name: "problems", args: []string{"problems"}, pages: 20_000, why: whyProblems},
	{name: "lanes", args: []string{"lanes"}, pages: 1_000, why: whyFleet},
	{name: "relays", args: []string{"relays"}, pages: 100, why: whyFleet},
	{name: "topics", args: []string{"topics"}, pages: 100, why: whyFleet},
	{name: "pauses", args: []string{"pauses"}, pages: 100, why: whyFleet},
	{name: "list_page", args: []string{"events", "list", "--limit", "1000"}, pages: 3_000, why: whyPage},
	{name: "list_id", args: []string{"events", "list", "id:{published}"}, pages: 100, why: whyIndex},
	{
		name: "list_aggregate", args: []string{"events", "list", "aggregate:{aggregate}"}, pages: 150, why: whyIndex,
		lookup: true,
	},
	{name: "list_dead", args: []string{"events", "list", "state:dead"}, pages: 3_000, why: whyLetters},
	{name: "list_waiting", args: []string{"events", "list", "state:waiting"}, pages: 60_000, why: whyHeld},
	{name: "list_topic", args: []string{"events", "list", "topic:orders"}, pages: window, why: whyWindow},
	{name: "list_tenant", args: []string{"events", "list", "tenant:nobody"}, pages: window, why: whyWindow},
	{name: "list_error", args: []string{"events", "list", "error:amount"}, pages: window, why: whyWindow},
	{name: "list_rare", args: []string{"events", "list", "type:order_audited"}, pages: window, why: whyWindow},
	{
		name: "list_old", args: []string{"events", "list", "created:>20d", "tenant:tenant_7"}, pages: window,
		why: whyWindow,
	},
	{name: "list_data", args: []string{"events", "list", "data.n:1"}, pages: 8_000, why: whyWindow + ", here 5,000"},
	{
		name: "list_published", args: []string{"events", "list", "published:{hour}", "--limit", "100"}, pages: 1_000,
		why: whyPage, lookup: true,
	},
	{name: "get", args: []string{"events", "get", "{dead}"}, pages: 150, why: whyEvent},
	{name: "explain_published", args: []string{"events", "explain", "{published}"}, pages: 150, why: whyEvent},
	{name: "explain_behind_dead", args: []string{"events", "explain", "{waiting}"}, pages: 1_500, why: whyLine},
	{name: "explain_ready", args: []string{"events", "explain", "{ready}"}, pages: 4_000, why: whyLine},
	{
		name: "explain_missing", args: []string{"events", "explain", "{missing}"}, exits: []int{3}, pages: 150, why: whyEvent,
	},
	{name: "aggregate", args: []string{"aggregate", "show", "{aggregate}"}, pages: 150, why: whyIndex},
	{name: "aggregate_large", args: []string{"aggregate", "show", "order/blocked"}, pages: 3_000, why: whyLarge},
	{name: "aggregate_busy", args: []string{"aggregate", "show", "order/busy"}, pages: 4_000, why: whyLarge},
	{name: "doctor", args: []string{"doctor"}, pages: 8_000, why: whyCatalog, exits: []int{1}},
	{name: "check", args: []string{"check"}, pages: 10_000, why: whySurvey, exits: []int{1, 2}},
	{name: "grants", args: []string{"grants", "--check"}, pages: 5_000, why: whyCatalog, exits: []int{1}},
	{name: "dead", args: []string{"dead", "list"}, pages: 2_500, why: whyLetters},
	{name: "export", args: []string{"events", "export", "--count", "500"}, pages: 1_500, why: whyPage},
	{name: "tail", args: []string{"events", "tail", "--count", "5"}, pages: 10_000, why: whyTail},
	{
		name: "list_type", args: []string{"events", "list", "type:order_audited"}, pages: 400, why: whyIndex, lookup: true,
		needs: "type",
	},
}
