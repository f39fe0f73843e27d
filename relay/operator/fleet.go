package operator

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// The bounds of a look at the fleet.
const (
	// MaxRelays is the most that a list of relays has. A relay that dies at every start leaves a row each time.
	MaxRelays = 1_000
	// mostTopicRows is the most rows of types and topics that are read.
	mostTopicRows = 20_000
)

// A Lane is one of the lanes that relays share, and who holds it.
type Lane struct {
	Number int `json:"lane"`
	// Held tells whether a relay that is alive holds it. A lane that nobody holds publishes nothing.
	Held bool `json:"held"`
	// Relay and RelayName are the owner's, also of one that has died and was not ended yet; empty: the lane is free.
	Relay     string `json:"relay,omitempty"`
	RelayName string `json:"relayName,omitempty"`
	// AcquiredAt is when the owner took it, LeaseUntil until when the owner counts as alive.
	AcquiredAt time.Time `json:"acquiredAt,omitzero"`
	LeaseUntil time.Time `json:"leaseUntil,omitzero"`
	// Every event at or below Floor is settled or held; Newest is the highest number in the lane, 0 if it has no event.
	Floor  int64 `json:"floor"`
	Newest int64 `json:"newest"`
	// Needs are the types that are parked here, because not every relay knows them.
	Needs []string `json:"needs,omitempty"`
	// Crashes is how many owners in a row have died. MarkedEvent is sent alone for that reason, MarkedDeaths of them died
	// with it.
	Crashes      int    `json:"crashes,omitempty"`
	MarkedEvent  string `json:"markedEvent,omitempty"`
	MarkedDeaths int    `json:"markedDeaths,omitempty"`
}

// RelayState is whether a relay is there.
type RelayState string

// The states of a relay.
const (
	RelayAlive RelayState = "alive"
	RelayDead  RelayState = "dead"  // it has not beaten for a lease, and no other relay has ended it yet
	RelayEnded RelayState = "ended" // it left, or another one found it dead
)

// A Relay is one start of a relay.
type Relay struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	Version   string     `json:"version"`
	State     RelayState `json:"state"`
	StartedAt time.Time  `json:"startedAt"`
	EndedAt   time.Time  `json:"endedAt,omitzero"`
	// BeatAt is its last sign of life, AliveUntil when it counts as dead without another.
	BeatAt     time.Time `json:"beatAt,omitzero"`
	AliveUntil time.Time `json:"aliveUntil,omitzero"`
	// Lanes are those that it holds, Types how many event types it knows.
	Lanes []int16 `json:"lanes"`
	Types int     `json:"types"`
	// FailingTopics are those that it has paused, because publishing to them fails; at most 100.
	FailingTopics []string `json:"failingTopics,omitempty"`
}

// A Topic is where events of some types go, as the relays that are there say it.
type Topic struct {
	Name  string      `json:"topic"`
	Types []TopicType `json:"types"`
	// Failing are the relays that have paused it by themselves, because publishing to it fails: its breaker is open.
	Failing []TopicFailure `json:"failing,omitempty"`
	// Paused are the pauses of operators that keep something of it from being published.
	Paused []Pause `json:"paused,omitempty"`
	// Limit is how many events per second operators let go there; nil: any number.
	Limit *Limit `json:"limit,omitempty"`
}

// A TopicType is an event type that goes to a topic.
type TopicType struct {
	Name string `json:"type"`
	// Relays are the names of those that know it, Alive how many of them are.
	Relays []string `json:"relays"`
	Alive  int      `json:"alive"`
}

// A TopicFailure is why a relay publishes nothing to a topic for now.
type TopicFailure struct {
	Relay     string    `json:"relay"`
	RelayName string    `json:"relayName"`
	Error     string    `json:"error"`
	Since     time.Time `json:"since"`
}

// Lanes lists the lanes, with their owners. The grants of the viewer role are enough, here and for what follows.
func (o *Operator) Lanes(ctx context.Context) (lanes []Lane, err error) {
	err = o.look(ctx, "lanes", func(tx *looking) error {
		var lane Lane
		var until, acquired *time.Time
		return o.rows(ctx, tx, "lanes", nil, []any{
			&lane.Number, &lane.Relay, &lane.RelayName, &lane.Held, &until, &acquired, &lane.Floor, &lane.Newest, &lane.Needs,
			&lane.Crashes, &lane.MarkedEvent, &lane.MarkedDeaths,
		}, func() {
			lane.LeaseUntil, lane.AcquiredAt = timeOf(until), timeOf(acquired)
			found := lane
			found.Needs = slices.Clone(lane.Needs)
			lanes = append(lanes, found)
		})
	})
	return lanes, err
}

// Relays lists the relays that are there and, if ended is true, those that were: rows stay for a day. At most
// MaxRelays, the newest.
func (o *Operator) Relays(ctx context.Context, ended bool) (relays []Relay, err error) {
	err = o.look(ctx, "relays", func(tx *looking) error {
		var relay Relay
		var endedAt, beatAt, until *time.Time
		return o.rows(ctx, tx, "relays", []any{ended, MaxRelays}, []any{
			&relay.ID, &relay.Name, &relay.Version, &relay.StartedAt, &endedAt, &beatAt, &until, &relay.State, &relay.Lanes,
			&relay.Types, &relay.FailingTopics,
		}, func() {
			relay.EndedAt, relay.BeatAt, relay.AliveUntil = timeOf(endedAt), timeOf(beatAt), timeOf(until)
			found := relay
			found.Lanes, found.FailingTopics = slices.Clone(relay.Lanes), slices.Clone(relay.FailingTopics)
			relays = append(relays, found)
		})
	})
	return relays, err
}

// Topics lists the topics that relays know, that they have paused, or that operators have paused or limited.
func (o *Operator) Topics(ctx context.Context) (topics []Topic, err error) {
	byName := map[string]*Topic{}
	named := func(name string) *Topic {
		if byName[name] == nil {
			byName[name] = &Topic{Name: name, Types: []TopicType{}}
		}
		return byName[name]
	}
	err = o.look(ctx, "topics", func(tx *looking) error {
		var name string
		var known TopicType
		err := o.rows(ctx, tx, "topics_known", []any{mostTopicRows}, []any{&name, &known.Name, &known.Relays, &known.Alive},
			func() {
				found := known
				found.Relays = slices.Clone(known.Relays)
				topic := named(name)
				topic.Types = append(topic.Types, found)
			})
		if err != nil {
			return err
		}
		var failure TopicFailure
		err = o.rows(ctx, tx, "failing_topics", []any{nil, mostTopicRows},
			[]any{&failure.Relay, &failure.RelayName, &name, &failure.Since, &failure.Error},
			func() { topic := named(name); topic.Failing = append(topic.Failing, failure) })
		if err != nil {
			return err
		}
		limits, err := o.limitsIn(ctx, tx)
		if err != nil {
			return err
		}
		for i := range limits {
			named(limits[i].Topic).Limit = &limits[i]
		}
		pauses, err := o.pausesIn(ctx, tx)
		for _, pause := range pauses {
			if pause.Scope == TopicScope(pause.Name) {
				named(pause.Name)
			}
		}
		for _, topic := range byName {
			topic.Paused = pausesOf(topic, pauses)
		}
		return err
	})
	for _, topic := range byName {
		topics = append(topics, *topic)
	}
	slices.SortFunc(topics, func(a, b Topic) int { return cmp.Compare(a.Name, b.Name) })
	return topics, err
}

// pausesOf are those that cover some of a topic.
func pausesOf(topic *Topic, pauses []Pause) (covering []Pause) {
	for _, pause := range pauses {
		if pause.Covers(topic.Name, "") || slices.ContainsFunc(topic.Types, func(t TopicType) bool {
			return pause.Covers(topic.Name, t.Name)
		}) {
			covering = append(covering, pause)
		}
	}
	return covering
}

// Excuses are the event types that wait for a reason which is told as such: their topic fails, or operators have
// limited it, or paused it, the type or everything. Each has the reason in a word. A pause excuses nothing that merely
// waits behind it.
func Excuses(topics []Topic, pauses []Pause) map[string]string {
	excuses, others := map[string]string{}, map[string]bool{}
	for _, pause := range pauses {
		if pause.Scope == TypeScope(pause.Name) {
			excuses[pause.Name] = "paused"
		}
	}
	for i := range topics {
		for _, eventType := range topics[i].Types {
			switch {
			case slices.ContainsFunc(topics[i].Paused, func(p Pause) bool { return p.Covers(topics[i].Name, eventType.Name) }):
				excuses[eventType.Name] = "paused"
			case len(topics[i].Failing) > 0:
				excuses[eventType.Name] = "failing"
			case topics[i].Limit != nil:
				excuses[eventType.Name] = "limited"
			default:
				others[eventType.Name] = true
			}
		}
	}
	maps.DeleteFunc(excuses, func(eventType, _ string) bool { return others[eventType] }) // relays differ in its topic
	return excuses
}

// CanPublish tells whether a relay that is alive can publish events of a type: it knows it, or has the name of those
// that learn every type.
func (o *Operator) CanPublish(ctx context.Context, eventType, learner string) (can bool, err error) {
	err = o.look(ctx, "who knows "+eventType, func(tx *looking) error {
		return tx.QueryRow(ctx, tx.sql("can_publish"), eventType, learner).Scan(&can)
	})
	return can, err
}

// rows runs the statement of a file and takes in each row.
func (o *Operator) rows(ctx context.Context, tx pgx.Tx, file string, args, into []any, each func()) error {
	rows, err := tx.Query(ctx, statementOf(o.schema, file), args...)
	if err != nil {
		return err //nolint:wrapcheck // look says what it was
	}
	_, err = pgx.ForEachRow(rows, into, func() error {
		each()
		return nil
	})
	return err //nolint:wrapcheck // look says what it was
}

// timeOf is zero for null.
func timeOf(at *time.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return *at
}

// Ranges writes numbers in their order as people do: "1-3, 7".
func Ranges(lanes []int16) string {
	sorted := slices.Sorted(slices.Values(lanes))
	var parts []string
	for first := 0; first < len(sorted); {
		last := first
		for last+1 < len(sorted) && sorted[last+1] <= sorted[last]+1 {
			last++
		}
		part := strconv.Itoa(int(sorted[first]))
		if sorted[last] > sorted[first] {
			part += "-" + strconv.Itoa(int(sorted[last]))
		}
		parts = append(parts, part)
		first = last + 1
	}
	return strings.Join(parts, ", ")
}

// failoverWindow is how recently relays must have used the outbox on another timeline of the same cluster for this to
// be a failover, as is the default of a relay.
const failoverWindow = 10 * time.Minute

// Restored tells whether relays take the database for restored or copied: then they pause by themselves until
// [RestoredScope] is resumed, and do not show as alive before. A role that may not ask learns false.
func (o *Operator) Restored(ctx context.Context) (restored bool, err error) {
	err = o.look(ctx, "restored", func(l *looking) error {
		where, err := l.identity(ctx)
		restored = where.moved() && (!where.sameCluster || l.now.Sub(where.seen) > failoverWindow)
		return err
	})
	return restored, err
}
