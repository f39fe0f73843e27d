package operator

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/internal/span"
	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/relay/internal/idtime"
)

// causes decides what the facts mean. All that applies is named; what follows from something else that is named is
// not.
func (f *facts) causes() []Cause {
	if !f.there {
		return f.notThere()
	}
	switch f.event.State {
	case state.Published.String():
		return []Cause{f.erased(f.published())}
	case state.Discarded.String():
		return []Cause{f.erased(f.discarded())}
	case state.Dead.String(), state.DeadBlocking.String():
		return []Cause{f.erased(f.dead())}
	}
	causes := slices.Concat(f.fleet(), f.pausedBy(), f.behind(), f.unknownType(f.event.Type), f.laneHeld(),
		f.topicFails(), f.limitedTo(), f.own(), f.openBefore())
	keeps := slices.ContainsFunc(causes, func(c Cause) bool { return c.Keeps })
	if stuck := f.stuck(); !keeps && stuck != nil {
		causes = append(causes, *stuck)
	} else if !keeps {
		causes = append(causes, f.due())
	}
	return causes
}

func (f *facts) isParked() bool { return f.event.State == state.Parked.String() }

// published says when, and how long it took.
func (f *facts) published() Cause {
	if f.event.PublishedAt == nil {
		return Cause{Code: CausePublished, Says: "It is published. When, somebody has taken away."}
	}
	at := *f.event.PublishedAt
	return Cause{Code: CausePublished, Says: fmt.Sprintf("It is published: the broker acknowledged it at %s, %s ago, %s "+
		"after its transaction began.", at.Format(time.RFC3339), span.Of(f.now.Sub(at)), span.Of(at.Sub(f.event.CreatedAt)))}
}

// discarded says who closed it.
func (f *facts) discarded() Cause {
	says := "It was discarded, and is never published."
	if done := f.lastAction("discard"); done != nil {
		says = fmt.Sprintf("%s discarded it %s ago: %s. It is never published.", done.Actor, span.Of(f.now.Sub(done.At)),
			strings.TrimSuffix(done.Reason, "."))
	}
	return Cause{Code: CauseDiscarded, Says: says}
}

func (f *facts) lastAction(verb string) *ActionDone {
	for i := range f.actions {
		if f.actions[i].Verb == verb {
			return &f.actions[i]
		}
	}
	return nil
}

// erased says so of an event that is.
func (f *facts) erased(c Cause) Cause {
	if !f.event.Erased {
		return c
	}
	c.Says += " Its payload and headers were erased"
	if done := f.lastAction("erase"); done != nil {
		c.Says += fmt.Sprintf(" by %s %s ago: %s", done.Actor, span.Of(f.now.Sub(done.At)),
			strings.TrimSuffix(done.Reason, "."))
	}
	c.Says += "."
	return c
}

// dead says why it is not tried again.
func (f *facts) dead() Cause {
	died := "It is dead"
	if len(f.letters) > 0 {
		letter := f.letters[0]
		died = fmt.Sprintf("It died %s ago with the reason %s, after %s", span.Of(f.now.Sub(letter.FailedAt)), letter.Reason,
			plural(letter.Attempts, "attempt"))
		if letter.Detail != "" {
			died += ": " + quote(letter.Detail)
		}
	}
	c := Cause{
		Code: CauseDead, Says: died + ". Relays do not try it again; later events of its aggregate went on.",
		Do: decide("dead redrive", f.id.String()) + " when the cause is gone, or " + decide("dead discard", f.id.String()),
	}
	if f.event.Erased { // nothing is left to publish
		c.Do = decide("dead discard", f.id.String())
	}
	if f.event.State == state.DeadBlocking.String() {
		c.Code, c.Do = CauseDeadBlocking, c.Do+"; "+decide("skip", f.id.String())+" lets the later ones go"
		c.Says = fmt.Sprintf("%s. Relays do not try it again, and later events of %s/%s wait behind it.", died,
			f.event.AggregateType, f.event.AggregateID)
	} else if skip := f.lastAction("skip"); skip != nil {
		c.Says += fmt.Sprintf(" %s skipped it %s ago: %s.", skip.Actor, span.Of(f.now.Sub(skip.At)), skip.Reason)
	}
	return c
}

// notThere says what is known of an event that is not in the table.
func (f *facts) notThere() []Cause {
	made := idtime.Of(f.id)
	var traces []string
	if len(f.letters) > 0 {
		letter := f.letters[0]
		traces = append(traces, fmt.Sprintf("it died %s ago (%s)", span.Of(f.now.Sub(letter.FailedAt)), letter.Reason))
	}
	if len(f.actions) > 0 { // what was decided says more than that somebody has looked
		at := slices.IndexFunc(f.actions, func(a ActionDone) bool { return a.Verb != "look" })
		done := f.actions[max(at, 0)]
		traces = append(traces, fmt.Sprintf("%s did a %s %s ago", done.Actor, done.Verb, span.Of(f.now.Sub(done.At))))
	}
	// What has left a trace was here: it is not to be looked for elsewhere.
	was := strings.Join(traces, ", and ")
	ran := "retention has deleted nothing yet"
	if f.cutOff != nil {
		ran = "retention has deleted only what is older than " + f.cutOff.UTC().Format(time.RFC3339)
	}
	var causes []Cause
	switch {
	case f.cutOff != nil && made.Before(*f.cutOff):
		so := "So it is either pruned, after it was published or discarded, or was never here."
		if was != "" {
			so = "It was here: " + was + "."
		}
		deletes := "It is not in the table. Retention deletes what is published or discarded and old: it has deleted "
		up := fmt.Sprintf("up to those of %s, and this id was made at %s. %s", f.cutOff.UTC().Format(time.RFC3339),
			made.Format(time.RFC3339), so)
		causes = append(causes, Cause{
			Code: CausePruned, Says: fmt.Sprintf("%s%s, %s", deletes, plural(int(f.deleted), "event"), up),
			others: true, told: deletes + "events " + up, // the count is that of all tenants
		})
	case was != "":
		causes = append(causes, Cause{Code: CauseNotFound, Says: fmt.Sprintf("It is not in the table any more, and this id "+
			"was made at %s, while %s: somebody has. It was here: %s.", made.Format(time.RFC3339), ran, was)})
	default:
		causes = append(causes, Cause{
			Code: CauseNotFound, Says: fmt.Sprintf("It is not in the table, and this id was made at %s, while %s. Its "+
				"transaction has rolled back or is still open, or it was emitted into another outbox.",
				made.Format(time.RFC3339), ran),
			Do: "look at the producer's errors, and whether it uses this database and schema",
		})
	}
	if was == "" && len(f.writers) > 0 {
		causes = append(causes, Cause{
			Code: CauseOpenWriter, Says: "Transactions that write events are open, and what they wrote shows when they " +
				"commit: " + f.list(f.writers) + ".",
		})
	}
	return causes
}

// fleet says what stops all relays.
func (f *facts) fleet() []Cause {
	var causes []Cause
	switch {
	case f.identity.standby:
		causes = append(causes, Cause{
			Code: CauseStandby, Keeps: true, Says: "This database is a standby, in recovery: relays need the primary.",
			Do: "ask the primary, or promote this one",
		})
	case f.identity.moved():
		what := "from another cluster: this database was restored from a dump, or copied, or the cluster was upgraded"
		if f.identity.sameCluster {
			what = fmt.Sprintf("from another timeline: this is %d, and relays were last seen on %d at %s. If that is more "+
				"than their FailoverWindow ago, they take it for restored to a point in time", f.identity.here, f.identity.timeline,
				f.identity.seen.UTC().Format(time.RFC3339))
		}
		causes = append(causes, Cause{
			Code: CauseRestored, Keeps: true, Says: "The outbox comes " + what + ". Relays that run here hold no lane and " +
				"publish nothing, because they may send again what was sent before.",
			Do: "see what would go out in a relay's log, then outboxctl resume --restored " + reasonWord,
		})
	}
	if len(f.alive) == 0 {
		causes = append(causes, f.noRelay())
	}
	return causes
}

// noRelay says that nobody is there. On a database that was restored relays write nothing before they are resumed, so
// there it is a word of caution, and keeps nothing that the restore does not.
func (f *facts) noRelay() Cause {
	says := "No relay is alive."
	if f.holder.Relay != "" && f.holder.LastBeat != nil {
		says = fmt.Sprintf("No relay is alive. %s held lane %d, and was last heard of %s ago.", f.holder.Relay, f.event.Lane,
			span.Of(f.now.Sub(*f.holder.LastBeat)))
	}
	c := Cause{
		Code: CauseNoRelay, Keeps: true, Says: says,
		Do: "start outbox-publisher, or look into its log for why it does not reach this database and schema",
	}
	if f.identity.moved() && !f.identity.standby {
		c.Keeps = false
		c.Says = "No relay shows as alive. One that waits for the resume does not show here; where none runs, nothing goes " +
			"out after it either."
		c.Do = "see that an outbox-publisher runs against this database and schema"
	}
	return c
}

// pausedBy says what operators have paused.
func (f *facts) pausedBy() []Cause {
	var causes []Cause
	for _, p := range f.pauses {
		c := Cause{
			Keeps: true, Do: "when it is over: outboxctl " + strings.Join(p.ResumeWith(), " ") + " " + reasonWord,
			Says: fmt.Sprintf("%s paused %s %s ago: %s.", p.Actor, map[string]string{
				"all": "everything", "topic": "the topic " + p.Name, "type": "the type " + p.Name,
			}[p.Kind], span.Of(f.now.Sub(p.Since)), strings.TrimSuffix(p.Reason, ".")),
		}
		switch {
		case p.Scope == AllScope:
			c.Code = CausePausedAll
		case f.event.Topic != "" && p.Scope == TopicScope(f.event.Topic):
			c.Code = CausePausedTopic
		case p.Scope == TypeScope(f.event.Type):
			c.Code = CausePausedType
		case p.Kind == TypeScope("").Kind && f.inLine(p.Name):
			c.Code = CausePausedType
			c.Says += " An event of it is before this one in its aggregate, and this one waits behind that."
			c.behindOthers() // whose event that is nobody has looked up
		default:
			continue
		}
		causes = append(causes, c)
	}
	return causes
}

// inLine tells whether an event of this type is before it in its line and would have to go first.
func (f *facts) inLine(eventType string) bool {
	if f.lineUnknown() {
		return false
	}
	if slices.Contains(f.before.types, eventType) && f.sameLine(f.topicOf(eventType)) {
		return true
	}
	return slices.ContainsFunc(f.heads, func(h head) bool { return h.eventType == eventType && f.blocks(h) })
}

// typePaused tells whether an operator has paused the type of the event, or of one before it in its line. The relay
// writes such events down as waiting.
func (f *facts) typePaused() bool {
	return slices.ContainsFunc(f.pauses, func(p Pause) bool {
		return p.Kind == TypeScope("").Kind && (p.Name == f.event.Type || f.inLine(p.Name))
	})
}

// sameLine tells whether events of this topic keep their order with this one. Where a topic is not known nobody can
// say that they do not.
func (f *facts) sameLine(topic string) bool {
	return topic == "" || f.event.Topic == "" || topic == f.event.Topic
}

// lineUnknown tells that nobody can say what the event is behind: no relay knows its topic, and none has written down
// that it waits.
func (f *facts) lineUnknown() bool {
	return f.event.Topic == "" && f.event.State != state.Waiting.String()
}

func (f *facts) blocks(h head) bool {
	topic := f.topicOf(h.eventType)
	if topic == "" {
		topic = h.topic
	}
	return f.sameLine(topic)
}

// behind names the first head of each kind that the event is behind.
func (f *facts) behind() []Cause {
	var causes []Cause
	named := map[state.State]bool{}
	for _, h := range f.heads {
		if named[h.kind] || !f.blocks(h) {
			continue
		}
		named[h.kind] = true
		found := f.behindOne(h)
		for i := range found {
			if h.tenant != f.event.Tenant {
				found[i].behindOthers()
			}
		}
		causes = append(causes, found...)
	}
	if f.event.State == state.Waiting.String() && len(causes) == 0 && !f.typePaused() {
		causes = append(causes, Cause{
			Code: CauseBehindNothing, Keeps: true, Says: "It waited behind an event of its aggregate that is gone. The holder " +
				"of its lane looks at it within seconds; if it stays so, the verb that took the other away was cut off.",
			Do: "send that verb again with its --action; outboxctl aggregate show " + f.event.AggregateType + "/" +
				f.event.AggregateID + " has the line",
		})
	}
	return causes
}

// behindOne says what it means that the event is behind this one.
func (f *facts) behindOne(h head) []Cause {
	it := fmt.Sprintf("%s %s of %s/%s", h.eventType, h.id, f.event.AggregateType, f.event.AggregateID)
	lastError := ""
	if h.err != "" {
		lastError = ": " + quote(h.err)
	}
	if f.lineUnknown() && h.eventType != f.event.Type {
		return maybeBehind(h.kind, it)
	}
	switch h.kind {
	case state.DeadBlocking:
		return []Cause{{
			Code: CauseBehindDead, Keeps: true, Says: fmt.Sprintf("It is behind a dead event that blocks its aggregate: %s, "+
				"dead for %s, after %s%s.", it, span.Of(f.now.Sub(h.since)), plural(h.attempts, "attempt"), lastError),
			Do: decide("dead redrive", h.id) + " when the cause is gone; " + decide("skip", h.id) + ", or discard, lets this " +
				"one go",
		}}
	case state.Parked:
		causes := []Cause{{
			Code: CauseBehindParked, Keeps: true, Says: fmt.Sprintf("It is behind a parked event of its aggregate: %s, "+
				"parked for %s%s.", it, span.Of(f.now.Sub(h.since)), lastError),
			Do: "see outboxctl events explain " + h.id,
		}}
		if h.eventType != f.event.Type {
			causes = append(causes, f.unknownType(h.eventType)...)
		}
		return causes
	case state.Retrying:
		return []Cause{{
			Code: CauseBehindRetrying, Keeps: true, Says: fmt.Sprintf("It is behind an event of its aggregate that failed "+
				"and is tried again %s: %s, after %s%s.", f.when(h.due), it, plural(h.attempts, "attempt"), lastError),
		}}
	case state.Ready, state.Waiting, state.Dead, state.Published, state.Discarded: // not what others wait behind
	}
	return nil
}

// maybeBehind says that the event is behind another one if both go to the same topic.
func maybeBehind(kind state.State, it string) []Cause {
	code, blocks := map[state.State]CauseCode{
		state.DeadBlocking: CauseBehindDead, state.Parked: CauseBehindParked, state.Retrying: CauseBehindRetrying,
	}[kind]
	if !blocks {
		return nil
	}
	return []Cause{{
		Code: code, Says: fmt.Sprintf("Before it in its aggregate is one that is %s: %s. It waits behind that only if it "+
			"goes to the same topic, and no relay that is there knows its topic.", kind, it),
		Do: "ask again when a relay knows its type",
	}}
}

// unknownType says who knows the type, which is the event's own or that of one before it.
func (f *facts) unknownType(eventType string) []Cause {
	if len(f.alive) == 0 {
		return nil // nobody is there to know it
	}
	var knowing []string
	holderKnows := false
	for _, relay := range f.alive {
		if slices.ContainsFunc(f.known, func(k knownType) bool { return k.relay == relay.id && k.eventType == eventType }) {
			knowing = append(knowing, relay.name)
			holderKnows = holderKnows || relay.id == f.holder.id
		}
	}
	about := "its type " + eventType
	if eventType != f.event.Type {
		about = "the type " + eventType + ", of an event before it"
	}
	switch {
	case len(knowing) == 0:
		return []Cause{{
			Code: CauseTypeUnknown, Keeps: true, Says: fmt.Sprintf("None of the %s alive knows %s: such events are "+
				"parked, and hold up their aggregate. After a day (UnknownTypeMaxAge) they are dead.",
				relays(len(f.alive)), about),
			Do: "deploy a relay whose registry has the contract of " + eventType + "; it releases what it knows by itself",
		}}
	case !holderKnows && f.holder.Alive:
		return []Cause{{
			Code: CauseKnownByOthers, Keeps: true, Says: fmt.Sprintf("%s holds lane %d and does not know %s; %s "+
				"does. The lane moves to a relay that knows more of what is parked in it, within about half a minute.",
				f.holder.Relay, f.event.Lane, about, someOf(knowing)),
			Do: "if it stays so, finish the deployment: the relays' registries differ",
		}}
	case eventType == f.event.Type && f.isParked():
		says := "It is parked, though the relay that holds its lane knows its type: most events of the type break their " +
			"contract, it stands in another lane than its aggregate, or it is released within seconds."
		if f.event.LastError != "" {
			says += " The last error: " + quote(f.event.LastError) + "."
		}
		return []Cause{{
			Code: CauseParked, Keeps: true, Says: says, Do: "fix the cause, then " + decide("release", f.id.String()),
		}}
	}
	return nil
}

// laneHeld says whether somebody works on the lane.
func (f *facts) laneHeld() []Cause {
	if f.holder.Alive || len(f.alive) == 0 || f.identity.moved() {
		return nil
	}
	says := fmt.Sprintf("Nobody holds its lane %d. %s alive: one of them takes it within about a second.", f.event.Lane,
		are(len(f.alive)))
	if f.holder.owned {
		says = fmt.Sprintf("The relay that holds its lane %d is silent, and its lease is over. %s alive: one of them "+
			"ends it and takes the lane within seconds.", f.event.Lane, are(len(f.alive)))
		if f.holder.LastBeat != nil {
			says += fmt.Sprintf(" It is %s, last heard of %s ago.", f.holder.Relay, span.Of(f.now.Sub(*f.holder.LastBeat)))
		}
	}
	return []Cause{{
		Code: CauseLaneUnheld, Keeps: true, Says: says,
		Do: "if it stays so, look into the relays' logs: they cannot take lanes",
	}}
}

// topicFails says what the breaker of the topic says, by the word of the lane's holder if it has one.
func (f *facts) topicFails() []Cause {
	var names []string
	var shown *failingTopic
	for i, failing := range f.failing {
		names = append(names, failing.name)
		if shown == nil || failing.relay == f.holder.id {
			shown = &f.failing[i]
		}
	}
	if shown == nil || f.holder.Alive && shown.relay != f.holder.id {
		return nil // another relay's trouble
	}
	return []Cause{{
		Code: CauseTopicFailing, Keeps: true, Says: fmt.Sprintf("The topic %s failed for %s and has been paused for %s: %s. "+
			"It is probed until it takes events again; nothing is charged meanwhile.", f.event.Topic, someOf(names),
			span.Of(f.now.Sub(shown.since)), quote(shown.err)),
		Do: "look at the broker",
	}}
}

// own says what the event itself waits for.
func (f *facts) own() []Cause {
	var causes []Cause
	if f.event.State == state.Retrying.String() && f.event.DueAt != nil && f.event.DueAt.After(f.now) {
		says := fmt.Sprintf("It failed and is tried again %s. It was charged with %s so far.", f.when(f.event.DueAt),
			plural(f.event.Attempts, "attempt"))
		if f.event.LastError != "" {
			says += " The last error: " + quote(f.event.LastError) + "."
		}
		causes = append(causes, Cause{Code: CauseBackoff, Keeps: true, Says: says})
	}
	if f.holder.marked != "" && f.holder.Alive {
		causes = append(causes, Cause{
			Code: CauseQuarantine, Keeps: f.holder.marked != f.id.String(), Says: fmt.Sprintf("Relays died in lane %d, so "+
				"its events are sent one at a time; the one that is sent is %s, with which %s died.", f.event.Lane,
				f.holder.marked, relays(f.holder.markedWhile)),
			others: f.holder.marked != f.id.String(), told: fmt.Sprintf("Relays died in lane %d, so its events are sent one at "+
				"a time.", f.event.Lane),
		})
	}
	if f.event.State != state.Ready.String() {
		return causes
	}
	if f.event.Seq <= f.holder.Floor && f.holder.Alive {
		causes = append(causes, Cause{
			Code: CauseBelowFloor, Keeps: true, Says: fmt.Sprintf("Its number %d is not above the floor %d of its lane, where "+
				"everything should be settled: a sweep finds it within a minute or so.", f.event.Seq, f.holder.Floor),
			Do: "tell whoever writes events past the library, or set the sequence: the relays' logs have it",
		})
	}
	return append(causes, f.backlog()...)
}

// backlog says that others are before it, and whether the relay works on them.
func (f *facts) backlog() []Cause {
	before := fmt.Sprintf("%s of its lane are ready before it, the oldest for %s.", f.atLeast(f.before.ready),
		f.since(f.before.oldest))
	switch {
	case f.before.ready < backlogAtLeast:
		return nil
	case !f.idle():
		return []Cause{{
			Code: CauseBacklog, Keeps: true, Says: fmt.Sprintf("%s The relay works on them: the last publish of the lane was "+
				"%s ago.", before, f.since(f.lastOut)),
		}}
	case f.unsure():
		return []Cause{{
			Code: CauseBacklog, Keeps: true, Says: before + " No late publish of the lane was found among those that were " +
				"looked at, so it is not known when the last one was.",
			Do: fmt.Sprintf("ask again: if the oldest of them stays and the floor of the lane, now %d, does too, look into "+
				"the log of %s", f.holder.Floor, f.holder.Relay),
		}}
	}
	return nil
}

// unsure tells that so much is ready that the last publish may be where nobody looked.
func (f *facts) unsure() bool {
	return f.before.ready >= backlogAtLeast && (f.lastOut == nil || f.before.more())
}

// since is for how long something is so; nobody knows where there is no time.
func (f *facts) since(at *time.Time) string {
	if at == nil {
		return "an unknown time"
	}
	return span.Of(f.now.Sub(*at))
}

// backlogAtLeast is how many events before it are worth a word: a relay has fewer of a lane in flight anyway.
const backlogAtLeast = 100

func (f *facts) atLeast(n int) string {
	if f.before.more() {
		return fmt.Sprintf("%d events and more", n)
	}
	return plural(n, "event")
}

// patience is for how long a lane may be silent before that is a sign.
func (f *facts) patience() time.Duration { return max(stuckAtLeast, f.holder.lease) }

// idle tells whether nothing of the lane was published for long.
func (f *facts) idle() bool { return f.lastOut == nil || f.now.Sub(*f.lastOut) > f.patience() }

// stuck says that the holder of the lane lives and does not move. Its beats say that it is alive; that nothing of the
// lane went out since long, while this event is ready, says the rest.
func (f *facts) stuck() *Cause {
	e, h := f.event, f.holder
	readyFor := f.now.Sub(e.CreatedAt)
	since := h.Since
	if e.State == state.Retrying.String() && e.DueAt != nil {
		readyFor = f.now.Sub(*e.DueAt)
	}
	if !h.Alive || since == nil || f.now.Sub(*since) < f.patience() || readyFor < f.patience() || !f.idle() ||
		f.unsure() {
		return nil
	}
	last := "Nothing among the events of the lane around it was ever published"
	if f.lastOut != nil {
		last = fmt.Sprintf("Nothing of the lane was published for %s", span.Of(f.now.Sub(*f.lastOut)))
	}
	return &Cause{
		Code: CauseRelayStuck, Keeps: true, Says: fmt.Sprintf("%s has held lane %d for %s and is alive: its last beat was "+
			"%s ago. But this event has been ready for up to %s, and nothing that the tables show keeps it. %s; the floor "+
			"of the lane stands at %d, this event is %d.", h.Relay, e.Lane, span.Of(f.now.Sub(*since)),
			span.Of(f.now.Sub(*h.LastBeat)), span.Of(readyFor), last, h.Floor, e.Seq),
		Do: "look into the log of " + h.Relay + " for failed reads, publishes and settles; restart it if it says nothing. " +
			"If the event's transaction committed only just now, ask again",
	}
}

// due says that all is well.
func (f *facts) due() Cause {
	return Cause{Code: CauseDue, Says: fmt.Sprintf("Nothing keeps it: %s holds lane %d and is alive, and it should go "+
		"out within about a second.", f.holder.Relay, f.event.Lane)}
}

func (f *facts) when(due *time.Time) string {
	switch {
	case due == nil:
		return "soon"
	case due.After(f.now):
		return "in " + span.Of(due.Sub(f.now))
	default:
		return "now"
	}
}
