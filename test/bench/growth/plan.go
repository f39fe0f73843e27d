package growth

import "time"

// Plan is what a run does.
type Plan struct {
	URL string // of the server
	// Scale divides the sizes: 1 is the full size. The small one is a tenth of that.
	Scale int
	// Deeper is how many pages more a row may cost in the large size: an index that is small gets a level deeper, and the
	// reader of one topic may be through before the other begins.
	Deeper float64
	// Timed tells that times decide too: how long lanes take to open, and how long events of other topics wait.
	Timed bool
	// Waits is how many events are timed one after the other, in each state and in an empty outbox.
	Waits int
}

// Full is the size of a bad week.
func Full() Plan { return Plan{Scale: 1, Timed: true, Waits: 500} }

// Short is a tenth of it. What decides are statements that failed, pages and memory.
func Short() Plan { return Plan{Scale: 10, Deeper: 1, Waits: 20} }

// A state is what has grown.
type state struct {
	name string
	rows int  // in full
	few  bool // so few that they are never divided
	fill string
	// counted is a part of the statement whose pages are counted, and what they are counted for.
	counted string
	// open keeps a transaction open that drew a number before all others.
	open bool
	// bulkDown and slowDown are topics that do not carry: one all the time, the other at first.
	bulkDown, slowDown bool
	// lineBytes is the most that a row may take in the relay's memory.
	lineBytes float64
}

// The states. A reader of a topic that was down goes through the backlog of all others, here of a thousand types.
var states = []state{
	{
		name: "backlog", rows: 3_000_000, fill: "backlog", counted: "bound.seq + l.numbers", bulkDown: true, slowDown: true,
	},
	{
		name: "backlog_open", rows: 1_000_000, fill: "backlog", counted: "bound.seq + l.numbers", open: true, bulkDown: true,
		slowDown: true,
	},
	{name: "dead", rows: 1_000_000, fill: "dead", counted: "WITH RECURSIVE first", lineBytes: 100},
	{name: "parked", rows: 1_000_000, fill: "parked", counted: "looked AS MATERIALIZED", lineBytes: 100},
	{name: "names", rows: 20_000, few: true, fill: "names", counted: "outbox_held", lineBytes: 2_000},
}

// The musts.
const (
	mostRatio  = 1.2              // pages of a row, large against small
	mostBytes  = 64 << 20         // of a relay's memory, whatever there is
	mostAlarms = 110              // lines that people have to read
	mostNeeds  = 200              // type names that a beat carries, and lanes keep
	mostWait   = 3                // p99 of other topics' events against the empty outbox
	lease      = 30 * time.Second // within which all lanes open
	hung       = 10 * time.Minute
)

// types is how many types the topic has whose backlog it is. One event of every so many is of the slow topic.
const types = 1000
