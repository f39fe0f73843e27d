package marketplace

import (
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/examples/marketplace/events"
	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/proof/chaos"
)

// well is the report of a round on which everything went well and enough was tested.
func well(broker, inbox string) *Round {
	plan := Short()
	r := NewRound(broker, inbox, plan)
	id := outbox.NewID()
	r.Verdict = check.History{
		{Tx: &check.Tx{Key: "1", Outcome: check.OK, Events: []check.Event{{ID: id}}}},
		{Delivery: &check.Delivery{Index: 1, ID: id}},
		{End: &check.End{Drained: true}},
	}.Check(check.Floor{})
	r.Answers = Answers{Done: 400, Interrupted: 3}
	r.Notices = Notices{Changes: 150}
	if inbox == Redis {
		r.Notices.Surplus, r.Notices.Between = 1, 1
	}
	r.Model, r.Drained, r.Watched, r.Waiting = 10, true, 100, 499
	r.MidRequest, r.InSettle, r.AtCommit, r.BeforeCommit = 1, 1, 1, 1
	r.Types = map[string]int{}
	for _, eventType := range events.EventTypes {
		r.Types[eventType] = 1
	}
	for _, kind := range Kinds {
		r.Kills[kind] = plan.Kills
	}
	return r
}

func TestTheReport(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		doctor func(pg, redis *Round)
		want   string
	}{
		"well":            {func(_, _ *Round) {}, "ok=true"},
		"a double notice": {func(pg, _ *Round) { pg.Notices.Surplus = 1 }, "1 notices came twice"},
		"no notice": {func(_, redis *Round) {
			redis.Notices.Missing = 1
		}, "1 changes of licences have no notice"},
		"an unexplained notice": {func(_, redis *Round) { redis.Notices.Unexplained = 1 }, "not explained by a kill"},
		"a wrong notice": {func(pg, _ *Round) {
			pg.Notices.Wrong = []string{"a notice is wrong"}
		}, "a notice is wrong"},
		"a broken table": {func(pg, _ *Round) { pg.Tables = []string{"a row is missing"} }, "a row is missing"},
		"a read model that differs": {func(pg, _ *Round) {
			pg.ModelDiffers = []string{"an order is older"}
		}, "an order is older"},
		"an answer that is wrong":   {func(pg, _ *Round) { pg.Answers.Wrong = []string{"500"} }, "nats/postgres: 500"},
		"a stop that is none":       {func(pg, _ *Round) { pg.Unclean = []string{"api ended with 1"} }, "api ended with 1"},
		"not drained":               {func(pg, _ *Round) { pg.Drained = false }, "it did not drain"},
		"too much waits":            {func(_, redis *Round) { redis.Waiting = 500 }, "500 messages waited"},
		"an event that was lost":    {func(pg, _ *Round) { pg.Verdict = lost() }, "lost:"},
		"too few kills":             {func(pg, _ *Round) { pg.Kills[Relay]-- }, "kills of kind relay"},
		"no kill at a commit":       {func(pg, _ *Round) { pg.AtCommit = 0 }, "at the commit of a notice"},
		"no kill before a commit":   {func(pg, _ *Round) { pg.BeforeCommit = 0 }, "0 before it"},
		"no kill in a request":      {func(pg, _ *Round) { pg.MidRequest = 0 }, "while a request waited"},
		"no kill in a settle":       {func(pg, _ *Round) { pg.InSettle = 0 }, "in a settle"},
		"no kill between":           {func(_, redis *Round) { redis.Notices.Between = 0 }, "no kill fell between"},
		"no request without answer": {func(pg, _ *Round) { pg.Answers.Interrupted = 0 }, "every request was answered"},
		"nobody looked":             {func(pg, _ *Round) { pg.Watched = 0 }, "nobody looked"},
		"few changes":               {func(pg, _ *Round) { pg.Notices.Changes = 10 }, "10 changes of licences"},
		"an empty model":            {func(pg, _ *Round) { pg.Model = 0 }, "the read model is empty"},
		"a type that was never seen": {func(pg, redis *Round) {
			delete(pg.Types, "ad_paused")
			delete(redis.Types, "ad_paused")
		}, "no event of type ad_paused"},
	} {
		pg, redis := well(chaos.NATS, Postgres), well(chaos.PubSub, Redis)
		test.doctor(pg, redis)
		var said strings.Builder
		ok, err := Print(&said, pg, redis)
		if err != nil {
			t.Fatal(err)
		}
		if ok != (name == "well") || !strings.Contains(said.String(), test.want) {
			t.Errorf("%s: ok=%t, want %q in:\n%s", name, ok, test.want, said.String())
		}
	}
}

func lost() *check.Verdict {
	return check.History{
		{Tx: &check.Tx{Key: "1", Outcome: check.OK, Events: []check.Event{{ID: outbox.NewID()}}}},
		{End: &check.End{Drained: true, Dumped: true}},
	}.Check(check.Floor{})
}
