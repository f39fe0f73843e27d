package operator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/internal/span"
	"github.com/posthaste-dev/posthaste/relay/internal/sqlstate"
	"github.com/posthaste-dev/posthaste/relay/survey"
)

// Health is how the outbox does, in one word.
type Health string

// The healths. Degraded: everything else goes on, and somebody should look. Broken: events wait that should not.
const (
	Healthy  Health = "healthy"
	Degraded Health = "degraded"
	Broken   Health = "broken"
)

// A Reason is why an outbox is not healthy, and what to do.
type Reason struct {
	Code   string `json:"code"`
	Health Health `json:"health"`
	Text   string `json:"text"`
	Do     string `json:"do"`
}

// Backlog is how many events are in a state.
type Backlog struct {
	Events int64 `json:"events"`
	// AtLeast tells that there are more: nobody counts further than survey.Limit.
	AtLeast bool    `json:"atLeast,omitempty"`
	Oldest  float64 `json:"oldestSeconds"`
}

// Status is how the outbox does, and why.
type Status struct {
	At      time.Time `json:"at"`
	Health  Health    `json:"health"`
	Reasons []Reason  `json:"reasons"`

	Ready    Backlog `json:"ready"`
	Retrying Backlog `json:"retrying"`
	Waiting  Backlog `json:"waiting"`
	Parked   Backlog `json:"parked"`
	Dead     Backlog `json:"dead"`

	// BlockedAggregates is how many have a dead event that blocks them, whether or not a later one waits.
	BlockedAggregates int64 `json:"blockedAggregates"`
	Relays            int64 `json:"relays"`
	UnheldLanes       int64 `json:"unheldLanes"`

	// Topics is what each carried in the last five minutes.
	Topics []Traffic `json:"topics"`

	// NotKnown are the parts that the database did not answer: ready, held, dead, fleet, retention or topics. Their
	// numbers are zero and mean nothing; there is a reason for each, with the code not_known.
	NotKnown []string `json:"notKnown,omitempty"`
}

// The ages from which on events that are ready make an outbox degraded, and broken.
const (
	lateAge    = time.Minute
	tooLateAge = 10 * time.Minute
	// statusMinutes is over how many minutes a status says what topics carry.
	statusMinutes = 5
)

// Status says how the outbox does: one word with its reasons, and the numbers behind it. Counts go up to survey.Limit.
func (o *Operator) Status(ctx context.Context) (*Status, error) {
	status := &Status{}
	var pauses []Pause
	var where identity
	var idle []Job
	if err := o.look(ctx, "status", func(l *looking) (err error) {
		status.At = l.now
		if pauses, err = o.pausesIn(ctx, l); err != nil {
			return err
		}
		if status.Topics, err = l.traffic(ctx, statusMinutes); err != nil {
			return err
		}
		if where, err = l.identity(ctx); err != nil {
			return err
		}
		idle, err = l.idleJobsIfSeen(ctx)
		return err
	}); err != nil {
		return nil, err
	}
	topics, err := o.Topics(ctx)
	found, failed := survey.Look(ctx, o.db, survey.Config{Schema: o.schema, Topics: Excuses(topics, pauses)})
	if err != nil {
		failed["topics"] = err
	}
	for part, err := range failed {
		if ctx.Err() != nil || sqlstate.PermissionDenied(err) {
			return nil, fmt.Errorf("operator: status: %s: %w", part, err)
		}
	}
	status.NotKnown = slices.Sorted(maps.Keys(failed))
	status.take(&found)
	status.report(&found, where, topics)
	status.reportJobs(idle)
	for _, part := range status.NotKnown {
		status.because(Degraded, "not_known", fmt.Sprintf("%s (%s) is not known: %s", part, partNames[part],
			clean.Error(failed[part])), "ask again; if it stays so, look what keeps the database: outboxctl doctor")
	}
	for i := range status.Reasons {
		status.Reasons[i].Do = commandsIn(o.schema, status.Reasons[i].Do)
	}
	return status, nil
}

// partNames say what the parts of a status are about.
var partNames = map[string]string{
	"ready": "events that are ready", "held": "events that are retried, wait or are parked", "dead": "dead events",
	"fleet": "relays, lanes and pauses", "retention": "retention", "topics": "topics that fail",
}

// Knows tells whether a part of the survey had an answer: ready, held, dead, fleet, retention or topics.
func (s *Status) Knows(part string) bool { return !slices.Contains(s.NotKnown, part) }

// take takes in what a survey found.
func (s *Status) take(found *survey.Report) {
	backlog := func(count survey.Count) Backlog {
		return Backlog{count.Events, count.Events >= survey.Limit, count.Oldest.Seconds()}
	}
	s.Ready, s.Retrying, s.Waiting = backlog(found.Ready), backlog(found.Retrying), backlog(found.Waiting)
	s.Parked, s.Dead = backlog(found.Parked), backlog(found.Dead)
	s.BlockedAggregates, s.Relays, s.UnheldLanes = found.BlockedAggregates, found.Relays, found.UnheldLanes
}

// report says how that is, with all reasons.
func (s *Status) report(found *survey.Report, where identity, topics []Topic) {
	s.Health, s.Reasons = Healthy, []Reason{}
	if where.moved() {
		text := "the database was restored or copied, and the relays publish nothing"
		if s.Relays == 0 {
			text += "; one that waits for the resume does not show as alive"
		}
		s.because(Broken, "restored", text, "look at what would be sent again, then outboxctl resume --restored "+reasonWord)
	}
	s.reportFleet(found, where.moved())
	s.reportTopics(topics)
	if found.Pauses != (survey.Pauses{}) {
		s.because(Degraded, "paused", "operators have paused "+pausedThings(found.Pauses), "outboxctl pauses")
	}
	if s.Dead.Events > 0 {
		text := counted(s.Dead.Events, "event", "is", "are") + " dead"
		if s.BlockedAggregates > 0 {
			text += "; " + counted(s.BlockedAggregates, "aggregate", "is", "are") + " blocked by that"
		}
		s.because(Degraded, "dead", text, "outboxctl problems, outboxctl dead list")
	}
	if s.Parked.Events > 0 {
		s.because(Degraded, "parked",
			counted(s.Parked.Events, "event", "is", "are")+
				" parked: no relay knows the type, or most events of the type break its contract",
			"outboxctl events list state:parked, then outboxctl events explain ID")
	}
	for _, kind := range found.Retention {
		if kind.Halted {
			s.because(Degraded, "retention_halted",
				"retention of "+kind.Kind+" rows deletes nothing, because it would be too much", "outboxctl prune --dry-run")
		}
	}
}

// reportFleet looks at the relays, and at how long events wait for them.
func (s *Status) reportFleet(found *survey.Report, moved bool) {
	const start = "start outbox-publisher, or look why it stopped: outboxctl relays --all"
	switch {
	case !s.Knows("fleet"):
	case s.Relays == 0 && moved: // relays write nothing there before the resume: whether one runs cannot be seen
	case s.Relays == 0 && s.waits() > 0:
		s.because(Broken, "no_relay", "no relay is alive, and "+counted(s.waits(), "event", "waits", "wait"), start)
	case s.Relays == 0:
		s.because(Degraded, "no_relay", "no relay is alive", start)
	case s.UnheldLanes > 0:
		s.because(Degraded, "lanes_unheld",
			counted(s.UnheldLanes, "lane", "is", "are")+" held by nobody: what is in there waits",
			"outboxctl lanes; a relay takes them within a lease")
	}
	// What is paused or fails waits for that reason, which is told as such.
	oldest := found.ReadyTopics[""].Oldest
	if oldest > lateAge && s.Relays > 0 && s.Knows("topics") && found.Pauses.All == 0 {
		health := Degraded
		if oldest > tooLateAge {
			health = Broken
		}
		s.because(health, "late", "the oldest event that is ready has waited for "+span.Of(oldest),
			"outboxctl events list state:ready, then outboxctl events explain ID")
	}
}

// reportTopics names the topics that relays have paused, and those that operators have limited.
func (s *Status) reportTopics(topics []Topic) {
	for i := range topics {
		if failing := topics[i].Failing; len(failing) > 0 {
			s.because(Broken, "topic_failing", fmt.Sprintf("topic %s has taken nothing for %s: %s", topics[i].Name,
				span.Of(s.At.Sub(failing[0].Since)), failing[0].Error), "repair it at the broker; it is probed by itself")
		}
		if limit := topics[i].Limit; limit != nil {
			s.because(Degraded, "limited", limit.String(), "when consumers can take more: outboxctl topics limit "+
				limit.Topic+" none "+reasonWord)
		}
	}
}

// waits is how many events are neither published nor dead.
func (s *Status) waits() int64 {
	return s.Ready.Events + s.Retrying.Events + s.Waiting.Events + s.Parked.Events
}

func (s *Status) because(health Health, code, text, do string) {
	if health == Broken || s.Health == Healthy {
		s.Health = health
	}
	s.Reasons = append(s.Reasons, Reason{code, health, text, do})
}

// counted is a number with its noun and its verb.
func counted(n int64, noun, one, many string) string {
	text := fmt.Sprintf("%d %ss %s", n, noun, many)
	switch {
	case n == 1:
		text = "1 " + noun + " " + one
	case n >= survey.Limit:
		text = "at least " + text
	}
	return strings.TrimRight(text, " ")
}

// pausedThings says what operators have paused.
func pausedThings(p survey.Pauses) string {
	if p.All > 0 {
		return "everything"
	}
	var what []string
	if p.Topics > 0 {
		what = append(what, counted(p.Topics, "topic", "", ""))
	}
	if p.Types > 0 {
		what = append(what, counted(p.Types, "type", "", ""))
	}
	return strings.Join(what, " and ")
}
