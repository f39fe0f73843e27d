package marketplace

import (
	"fmt"
	"io"
	"time"

	"github.com/posthaste-dev/posthaste/examples/marketplace/events"
	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/figures"
	"github.com/posthaste-dev/posthaste/test/proof/chaos"
)

// Round is what was found with one broker and one inbox.
type Round struct {
	Broker, Inbox string
	plan          Plan
	Verdict       *check.Verdict
	Answers       Answers
	Notices       Notices
	// Tables has a sentence for each row without its event, event without its row, and promise that was not kept.
	Tables []string
	// Model is how many rows the read model has, and ModelDiffers has a sentence for each that is not as the order is.
	Model        int
	ModelDiffers []string
	// Types counts the events by their types.
	Types map[string]int
	// Kills counts the processes that were killed: of them the API's while a request waited for its answer, publishers in
	// a settle, and workers at the commit of a notice, which the server completed or took back, or anywhere.
	Kills                            map[Kind]int
	MidRequest, InSettle             int
	AtCommit, BeforeCommit, Anywhere int
	// Waiting is the most messages that the consumers had to acknowledge at a time, of those Watched times that somebody
	// looked.
	Waiting, Watched int
	Drained          bool
	DrainTime        time.Duration
	// Unclean are processes that did not stop in order.
	Unclean []string
	Seconds float64
}

// NewRound is an empty report.
func NewRound(broker, inbox string, plan Plan) *Round {
	return &Round{Broker: broker, Inbox: inbox, plan: plan, Kills: map[Kind]int{}}
}

func (r *Round) killed() (n int) {
	for _, kills := range r.Kills {
		n += kills
	}
	return n
}

// mostWaiting is what the emulator delivers from without getting slower and slower.
const mostWaiting = 500

// Problems are what was broken and what was tested too little, a sentence each.
func (r *Round) Problems() []string {
	var list []string
	is := func(broken bool, format string, args ...any) {
		if broken {
			list = append(list, r.Broker+"/"+r.Inbox+": "+fmt.Sprintf(format, args...))
		}
	}
	all := func(sentences []string) {
		for i, s := range sentences {
			is(i < 10, "%s", s)
		}
		is(len(sentences) > 10, "... and %d more of it", len(sentences)-10)
	}
	for _, p := range r.Verdict.Problems() {
		is(true, "%s", p)
	}
	all(r.Verdict.TooLittle)
	all(r.Answers.Wrong)
	all(r.Tables)
	all(r.ModelDiffers)
	all(r.Notices.Wrong)
	all(r.Unclean)
	is(r.Notices.Missing > 0, "%d changes of licences have no notice", r.Notices.Missing)
	is(r.Inbox == Postgres && r.Notices.Surplus > 0, "%d notices came twice", r.Notices.Surplus)
	is(r.Inbox == Redis && r.Notices.Unexplained > 0,
		"of %d surplus notices, %d are not explained by a kill between notice and mark", r.Notices.Surplus,
		r.Notices.Unexplained)
	is(!r.Drained, "it did not drain: nothing moved for %s", r.plan.Drain)
	is(r.Broker == chaos.PubSub && r.Waiting >= mostWaiting, "%d messages waited for one subscription, fewer than %d must",
		r.Waiting, mostWaiting)

	for _, kind := range Kinds {
		is(r.Kills[kind] < r.plan.Kills, "too little was tested: %d kills of kind %s, at least %d must be", r.Kills[kind],
			kind, r.plan.Kills)
	}
	is(r.MidRequest == 0, "too little was tested: the API was never killed while a request waited for its answer")
	is(r.InSettle == 0, "too little was tested: no publisher was killed in a settle")
	is(r.AtCommit == 0 || r.BeforeCommit == 0,
		"too little was tested: %d workers were killed at the commit of a notice, and %d before it", r.AtCommit,
		r.BeforeCommit)
	is(r.Inbox == Redis && r.Notices.Between == 0, "too little was tested: no kill fell between a notice and its mark")
	is(r.Answers.Interrupted == 0, "too little was tested: every request was answered")
	is(r.Watched == 0, "too little was tested: nobody looked how many messages wait")
	is(r.Notices.Changes < r.enough(), "too little was tested: %d changes of licences, at least %d must be",
		r.Notices.Changes, r.enough())
	is(r.Model == 0, "too little was tested: the read model is empty")
	return list
}

// enough is how many changes of licences there must be: a fifth of the requests are.
func (r *Round) enough() int { return r.plan.requests() / 5 }

// Print writes the problems of all rounds and the last line. It tells whether there were none.
func Print(to io.Writer, rounds ...*Round) (ok bool, err error) {
	var problems []string
	brokers, types := map[string]bool{}, map[string]int{}
	for _, r := range rounds {
		problems = append(problems, r.Problems()...)
		brokers[r.Broker] = true
		for eventType, n := range r.Types {
			types[eventType] += n
		}
	}
	for _, eventType := range events.EventTypes {
		if types[eventType] == 0 {
			problems = append(problems, "too little was tested: no event of type "+eventType)
		}
	}
	line := figures.New("proof-marketplace")
	total := func(name string, of func(*Round) int) {
		sum := 0
		for _, r := range rounds {
			sum += of(r)
		}
		line.Addf(name, "%d", sum)
	}
	only := func(inbox string, of func(Notices) int) func(*Round) int {
		return func(r *Round) int {
			if r.Inbox != inbox {
				return 0
			}
			return of(r.Notices)
		}
	}
	line.Addf("brokers", "%d", len(brokers))
	line.Addf("rounds", "%d", len(rounds))
	line.Addf("types", "%d", len(types))
	total("requests", func(r *Round) int { return r.Answers.Done + r.Answers.Rejected + r.Answers.Interrupted })
	total("interrupted", func(r *Round) int { return r.Answers.Interrupted })
	total("events", func(r *Round) int { return r.Verdict.Count(check.Committed) })
	for _, kind := range Kinds {
		total("kills_"+string(kind), func(r *Round) int { return r.Kills[kind] })
	}
	total("kills_mid_request", func(r *Round) int { return r.MidRequest })
	total("kills_in_settle", func(r *Round) int { return r.InSettle })
	total("kills_at_commit", func(r *Round) int { return r.AtCommit })
	total("kills_before_commit", func(r *Round) int { return r.BeforeCommit })
	total("pg_notices", only(Postgres, func(n Notices) int { return n.Changes - n.Missing + n.Surplus }))
	total("pg_double", only(Postgres, func(n Notices) int { return n.Surplus }))
	total("pg_missing", only(Postgres, func(n Notices) int { return n.Missing }))
	total("redis_notices", only(Redis, func(n Notices) int { return n.Changes - n.Missing + n.Surplus }))
	total("redis_missing", only(Redis, func(n Notices) int { return n.Missing }))
	total("redis_surplus", only(Redis, func(n Notices) int { return n.Surplus }))
	total("redis_kills_between", only(Redis, func(n Notices) int { return n.Between }))
	total("notices_wrong", func(r *Round) int { return len(r.Notices.Wrong) })
	total("model_rows", func(r *Round) int { return r.Model })
	total("model_differs", func(r *Round) int { return len(r.ModelDiffers) })
	total("tables_differ", func(r *Round) int { return len(r.Tables) })
	waiting := 0
	for _, r := range rounds {
		if r.Broker == chaos.PubSub {
			waiting = max(waiting, r.Waiting)
		}
	}
	line.Addf("pubsub_waiting", "%d", waiting)
	total("duplicates", func(r *Round) int { return r.Verdict.Count(check.Duplicates) })
	for _, zero := range check.Zeros() {
		total(zero.Name, func(r *Round) int { return r.Verdict.Count(zero.Of) })
	}
	longest := 0.0
	for _, r := range rounds {
		longest = max(longest, r.DrainTime.Seconds())
	}
	line.Addf("drain_seconds", "%.1f", longest)
	for _, problem := range problems {
		_, _ = fmt.Fprintln(to, "BROKEN:", problem) // the last line tells
	}
	line.Addf("ok", "%t", len(problems) == 0)
	if _, err := fmt.Fprintln(to, line); err != nil {
		return false, fmt.Errorf("marketplace proof: print: %w", err)
	}
	return len(problems) == 0, nil
}
