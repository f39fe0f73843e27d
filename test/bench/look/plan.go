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
}

// Full is 5,000,000 events.
func Full() Plan { return Plan{Events: 5_000_000, Timed: true} }

// Short is a tenth of it. What decides are pages, which depend on no machine.
func Short() Plan { return Plan{Events: 500_000} }

// The musts.
const (
	mostTime   = time.Second
	mostLookup = 100 * time.Millisecond
	runs       = 3 // of each command; the median counts
)

// A command is one that is measured. {published}, {dead}, {waiting} and {missing} in its arguments are ids of events,
// {aggregate} is an aggregate of five events.
type command struct {
	name string
	args []string
	// pages is the most that its statements may look at, in the short form.
	pages int64
	// lookup tells that it is one of the three that must be fast.
	lookup bool
	// needs is an optional look-up without which it is not asked.
	needs string
}

// window is what a search costs that looks at the newest 50,000 events: a page of the table
// has a few of them.
const window = 20_000

// commands are all that are measured, in this order. Those that need an optional look-up come last.
var commands = []command{
	{name: "list", args: []string{"events", "list"}, pages: 100},
	{name: "status", args: []string{"status"}, pages: 10_000},
	{name: "top", args: []string{"top", "--count", "1"}, pages: 10_000},
	{name: "problems", args: []string{"problems"}, pages: 2_000},
	{name: "lanes", args: []string{"lanes"}, pages: 3_000},
	{name: "relays", args: []string{"relays"}, pages: 1_000},
	{name: "topics", args: []string{"topics"}, pages: 1_000},
	{name: "pauses", args: []string{"pauses"}, pages: 100},
	{name: "list_page", args: []string{"events", "list", "--limit", "1000"}, pages: 3_000},
	{name: "list_id", args: []string{"events", "list", "id:{published}"}, pages: 100},
	{name: "list_aggregate", args: []string{"events", "list", "aggregate:{aggregate}"}, pages: 150, lookup: true},
	{name: "list_dead", args: []string{"events", "list", "state:dead"}, pages: 1_500},
	{name: "list_waiting", args: []string{"events", "list", "state:waiting"}, pages: 60_000},
	{name: "list_topic", args: []string{"events", "list", "topic:orders"}, pages: 100},
	{name: "list_tenant", args: []string{"events", "list", "tenant:nobody"}, pages: window},
	{name: "list_error", args: []string{"events", "list", "error:amount"}, pages: window},
	{name: "list_rare", args: []string{"events", "list", "type:order_audited"}, pages: window},
	{name: "list_old", args: []string{"events", "list", "created:>20d", "tenant:tenant_7"}, pages: window},
	{name: "list_data", args: []string{"events", "list", "data.n:1"}, pages: 8_000},
	{
		name: "list_published", args: []string{"events", "list", "published:{hour}", "--limit", "100"}, pages: 1_000,
		lookup: true,
	},
	{name: "get", args: []string{"events", "get", "{dead}"}, pages: 150},
	{name: "explain_published", args: []string{"events", "explain", "{published}"}, pages: 150},
	{name: "explain_waiting", args: []string{"events", "explain", "{waiting}"}, pages: 600},
	{name: "explain_missing", args: []string{"events", "explain", "{missing}"}, pages: 150},
	{name: "aggregate", args: []string{"aggregate", "show", "{aggregate}"}, pages: 150},
	{name: "aggregate_large", args: []string{"aggregate", "show", "order/blocked"}, pages: 3_000},
	{name: "dead", args: []string{"dead", "list"}, pages: 200},
	{name: "export", args: []string{"events", "export", "--count", "500"}, pages: 600},
	{name: "tail", args: []string{"events", "tail", "--count", "5"}, pages: 3_000},
	{name: "list_type", args: []string{"events", "list", "type:order_audited"}, pages: 200, lookup: true, needs: "type"},
}
