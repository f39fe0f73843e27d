package doctor

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/relay/operator"
)

const (
	// deadFor is how long a relay must be dead before it is told: the others end it within a moment.
	deadFor = time.Minute
	// mostNamed is how many of many are named.
	mostNamed = 20
	// failover is how recently the outbox must have been in use elsewhere to be taken for a failover, as a relay's
	// default.
	failover = 10 * time.Minute
)

// checkFleet looks at relays, lanes and topics.
func (x *examination) checkFleet(ctx context.Context) error {
	relays, err := x.op.Relays(ctx, false)
	if err != nil {
		return err
	}
	alive := 0
	var dead []string
	for _, relay := range relays {
		switch {
		case relay.State == operator.RelayAlive:
			alive++
		case relay.State == operator.RelayDead && x.Now().Sub(relay.AliveUntil) > deadFor:
			dead = append(dead, relay.Name)
		}
	}
	if alive == 0 && !x.found("restored") { // relays that wait for the resume do not show
		x.advisef("no_relay", "start one: outbox-publisher, or a relay of your own", "no relay is alive")
	}
	if len(dead) > 0 {
		x.sqlf("relay_dead", "SELECT "+x.name("outbox_end_expired")+"(NULL, 1000, true)",
			"%s: the lease is over, and the lanes are not given back", strings.Join(dead[:min(len(dead), mostNamed)], ", "))
	}
	lanes, err := x.op.Lanes(ctx)
	if err != nil {
		return err
	}
	var unheld []int16
	var needs []string
	for _, lane := range lanes {
		if !lane.Held {
			unheld = append(unheld, int16(lane.Number))
		}
		needs = append(needs, lane.Needs...)
	}
	if len(unheld) > 0 && alive > 0 {
		x.advisef("lanes_unheld", "run it again after a minute; if they stay, look at the log of the relays",
			"no live relay holds lane %s", operator.Ranges(unheld))
	}
	return x.checkTopics(ctx, needs)
}

// checkTopics tells of types that nobody knows, and of topics that fail.
func (x *examination) checkTopics(ctx context.Context, needs []string) error {
	topics, err := x.op.Topics(ctx)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, topic := range topics {
		for _, eventType := range topic.Types {
			known[eventType.Name] = known[eventType.Name] || eventType.Alive > 0
		}
		if len(topic.Failing) > 0 {
			failure := topic.Failing[0]
			x.advisef("topic_failing", "the error is the broker's: what it says is to be ended there; 'outboxctl "+
				"topics' has all",
				"%s, by %d relays since %s: %s", topic.Name, len(topic.Failing), failure.Since.UTC().Format(time.RFC3339),
				failure.Error)
		}
	}
	slices.Sort(needs)
	unknown := slices.DeleteFunc(slices.Compact(needs), func(name string) bool { return known[name] })
	if len(unknown) > 0 {
		x.advisef("type_unknown", "deploy a relay whose registry has them; what is parked then goes by itself",
			"parked: %s", strings.Join(unknown[:min(len(unknown), mostNamed)], ", "))
	}
	return nil
}

// checkIdentity: the outbox is where the relays left it.
func (x *examination) checkIdentity(ctx context.Context) error {
	var system, recordedSystem int64
	var timeline, recorded int32
	var seconds float64
	var empty bool
	return x.rows(ctx, "identity", nil, []any{&system, &timeline, &recordedSystem, &recorded, &seconds, &empty}, func() {
		same := system == recordedSystem
		if empty || same && (timeline == recorded || seconds <= failover.Seconds()) {
			return
		}
		from := fmt.Sprintf("on timeline %d of this cluster, and this is timeline %d", recorded, timeline)
		if !same {
			from = "in another cluster"
		}
		x.commandf("restored", x.outboxctl("resume", "--restored", "--reason", "this is the outbox to go on with"),
			"the relays were last seen %s, %s ago", from, age(seconds))
	})
}

// checkPauses names what operators have paused and limited.
func (x *examination) checkPauses(ctx context.Context) error {
	pauses, err := x.op.Pauses(ctx)
	for _, pause := range pauses {
		x.commandf("paused", x.outboxctl(append(pause.ResumeWith(), "--reason", "it goes on")...), "%s", pause)
	}
	if err != nil {
		return err
	}
	limits, err := x.op.Limits(ctx)
	for _, limit := range limits {
		x.commandf("limited", x.outboxctl("topics", "limit", limit.Topic, "none", "--reason", "it goes on"), "%s", limit)
	}
	return err
}

// checkJobs names jobs that nobody works on.
func (x *examination) checkJobs(ctx context.Context) error {
	idle, err := x.op.IdleJobs(ctx)
	for _, job := range idle[:min(len(idle), mostNamed)] {
		x.commandf("job_idle", x.outboxctl("jobs", "work", job.ID.String()),
			"job %s (%s %s) is running, and nobody has worked on it since %s; an outbox-publisher takes it once its "+
				"role has the grant: '%s'", job.ID, job.Verb, job.Filter, job.ChangedAt.Format(time.RFC3339),
			x.outboxctl("grant", "operator", "ROLE"))
	}
	return err
}

// checkBlocking names dead events that others wait behind.
func (x *examination) checkBlocking(ctx context.Context) error {
	var dead []deadEvent
	var one deadEvent
	err := x.rows(ctx, "blocking", []any{mostNamed}, []any{&one.id, &one.eventType, &one.err, &one.reason}, func() {
		dead = append(dead, one)
	})
	x.reportBlocking(dead)
	return err
}

// deadEvent is one that blocks its aggregate. reason is what its dead letter says; empty where it has none.
type deadEvent struct{ id, eventType, err, reason string }

// mayPass tells whether it may be published when it is tried again. The others died of what they are, or of who knew
// their type, and would die again.
func (d deadEvent) mayPass() bool {
	return d.reason == "" || d.reason == "max_attempts" || d.reason == "rejected"
}

// reportBlocking has a command for those that may pass now. About the others somebody must decide who knows more.
func (x *examination) reportBlocking(dead []deadEvent) {
	for _, mayPass := range []bool{true, false} {
		of := slices.DeleteFunc(slices.Clone(dead), func(d deadEvent) bool { return d.mayPass() != mayPass })
		if len(of) == 0 {
			continue
		}
		count := fmt.Sprint(len(of))
		if len(dead) == mostNamed {
			count = "at least " + count
		}
		problem := fmt.Sprintf("%s dead events block their aggregates, for instance %s: %s", count, of[0].eventType,
			of[0].err)
		if mayPass {
			words := []string{"dead", "redrive"}
			for _, d := range of {
				words = append(words, d.id)
			}
			x.commandf("dead_blocking", x.outboxctl(append(words, "--reason", "tried again, the doctor found it blocking")...),
				"%s", problem)
			continue
		}
		x.advisef("dead_blocking", "tried again they die again, unless the contract, the registry or the limit has changed: "+
			"then redrive them; else skip or discard them, each with its reason: "+
			x.outboxctl("skip", of[0].id, "--reason", "..."), "%s (%s)", problem, of[0].reason)
	}
}

var confirmTime = regexp.MustCompile(`set Confirmed to (\S+)`)

// checkRetention: what is finished and old goes.
func (x *examination) checkRetention(ctx context.Context) error {
	var kind, reason string
	var seconds *float64
	var halted bool
	var never, stale []string
	err := x.rows(ctx, "retention", nil, []any{&kind, &seconds, &halted, &reason}, func() {
		switch {
		case halted:
			words := []string{"prune"}
			if confirm := confirmTime.FindStringSubmatch(reason); confirm != nil {
				words = append(words, "--confirmed", strings.TrimRight(confirm[1], ".,;"))
			}
			if !x.found("retention_halted") {
				x.commandf("retention_halted", x.outboxctl(words...), "retention of what is %s deletes nothing: %s", kind, reason)
			}
		case seconds == nil && !x.installed.IsZero() && x.Now().Sub(x.installed) > x.RetentionAge:
			never = append(never, kind)
		case seconds != nil && *seconds > x.RetentionAge.Seconds():
			stale = append(stale, kind)
		}
	})
	if len(never)+len(stale) > 0 {
		problem := "retention has never run for " + strings.Join(never, ", ")
		if len(stale) > 0 {
			problem = "retention has not run within " + x.RetentionAge.String() + " for " + strings.Join(append(stale, never...),
				", ")
		}
		x.commandf("retention_stale", x.outboxctl("prune"), "%s", problem)
	}
	return err
}
