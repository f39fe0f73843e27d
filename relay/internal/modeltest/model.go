package modeltest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// model is the side in memory. A test makes a mutant by putting something else in place of answers, act, dumped
// or cancelRequests.
type model struct {
	mem     *memstore.Store
	answers core.Store
	act     func(check.Verb, memstore.Order, ...outbox.ID) ([]memstore.Result, error)
	dumped  func([]string) []string

	cancelRequests func(memstore.Order, outbox.ID) (canceled, inHands int, err error)

	txs   []*memstore.Tx
	steps time.Duration
}

// day is when the model's clock begins; lease times are counted from it. It moves a little with every step, so that
// what is changed twice has two times, and no lease ends by itself.
const day = 24 * time.Hour

// firstLane is the number of the first lane in the database.
const firstLane = 1

func newModel(lane func(core.Aggregate) int16) *model {
	m := &model{dumped: func(lines []string) []string { return lines }}
	clock := func() time.Duration { return day + m.steps }
	m.mem = memstore.New(memstore.Config{Lane: lane, First: firstLane, Clock: clock, Epoch: time.Unix(1_700_000_000, 0)})
	m.answers, m.act, m.cancelRequests = m.mem, m.mem.Operate, m.mem.CancelRequests
	return m
}

func (m *model) found(_ context.Context, id outbox.ID) (core.Found, error) {
	event, _ := m.mem.Event(id)
	event.ID = id
	return event.Found(), nil
}

func (m *model) version(_ context.Context, request int64) (int64, error) {
	for _, r := range m.mem.Requests() {
		if r.ID == request {
			return r.Version, nil
		}
	}
	return 0, nil
}

func (m *model) store() core.Store { return m.answers }

func (m *model) begin(context.Context) error {
	m.txs = append(m.txs, m.mem.Begin())
	return nil
}

func (m *model) write(_ context.Context, tx int, write write) ([]int64, error) {
	t := m.txs[tx]
	switch {
	case write.draw:
		seq, err := t.Draw()
		return []int64{seq}, err
	case write.seq != 0:
		return []int64{write.seq}, t.EmitAt(write.seq, write.events[0])
	case write.undo:
		savepoint := t.Savepoint()
		numbers, err := t.Emit(write.events...)
		if err != nil {
			return nil, err
		}
		return numbers, t.RollbackTo(savepoint)
	default:
		return t.Emit(write.events...)
	}
}

func (m *model) end(_ context.Context, tx int, commit bool) error {
	if commit {
		return m.txs[tx].Commit()
	}
	m.txs[tx].Rollback()
	return nil
}

func (m *model) writer(tx int) core.Writer { return m.txs[tx].Writer() }

func (m *model) operate(_ context.Context, verb check.Verb, order order) ([]string, error) {
	results, err := m.act(verb, order.inMemory(), order.Events...)
	return m.resultLines(results), err
}

func (m *model) resultLines(results []memstore.Result) (lines []string) {
	for _, result := range results {
		was := ""
		if _, found := m.mem.Event(result.Event); found {
			was = result.Was.String()
		}
		lines = append(lines, resultLine(result.Event, string(result.Outcome), was))
	}
	return lines
}

func (m *model) redeliver(_ context.Context, asked redelivery) ([]string, error) {
	every := time.Duration(0)
	if asked.slow {
		every = apart
	}
	results, err := m.mem.Redeliver(asked.inMemory(), asked.topic, every, asked.Events...)
	return m.resultLines(results), err
}

func (m *model) cancel(_ context.Context, canceling cancellation) ([]string, error) {
	canceled, left, err := m.cancelRequests(canceling.inMemory(), canceling.of)
	return []string{fmt.Sprintf("canceled %d left %d", canceled, left)}, err
}

func (o *order) inMemory() memstore.Order {
	return memstore.Order{Action: o.Action, Actor: o.Actor, Reason: o.Reason}
}

func (m *model) pause(_ context.Context, scope core.Scope, name string, order order) (string, error) {
	outcome, err := m.mem.Pause(order.inMemory(), scope, name)
	return string(outcome), err
}

func (m *model) resume(_ context.Context, scope core.Scope, name string, order order) (string, error) {
	outcome, err := m.mem.Resume(order.inMemory(), scope, name)
	return string(outcome), err
}

func (m *model) limit(_ context.Context, topic string, rate float64, order order) (string, error) {
	outcome, err := m.mem.Limit(order.inMemory(), topic, rate)
	return string(outcome), err
}

func (m *model) expireRelay(_ context.Context, relay outbox.ID) error {
	m.mem.ExpireRelay(relay)
	return nil
}

// holdings are the lanes that name the relay as their owner.
func (m *model) holdings(relay outbox.ID) (lanes []int16) {
	for _, l := range m.mem.Lanes() {
		if l.Owner == relay {
			lanes = append(lanes, l.Lane)
		}
	}
	return lanes
}

// told prints what a beat says about lanes.
func told(lanes []core.Progress) (list []string) {
	for _, l := range lanes {
		list = append(list, fmt.Sprintf("%d:%d:%d:%v:%s", l.Lane, l.Floor, l.Swept, l.Calm,
			strings.Join(slices.Sorted(slices.Values(l.Needs)), ",")))
	}
	return list
}

// dump prints the rows in the words of dump.sql.
func (m *model) dump(context.Context) ([]string, error) {
	var lines []string
	addf := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, r := range m.mem.Events() {
		far := r.State == core.Retrying && r.Due > day+time.Hour
		addf("event %d %s lane %d state %d attempts %d far %v error %q", r.Seq, r.ID, r.Lane, r.State, r.Attempts, far,
			r.LastError)
	}
	for _, l := range m.mem.Letters() {
		addf("letter %d %s seq %d attempts %d blocking %v topic %q reason %q detail %q payload %s headers %s",
			l.ID, l.Event, l.Seq, l.Attempts, l.Blocking, l.Topic, l.Reason, l.Detail, l.Payload, l.Headers)
	}
	for _, l := range m.mem.Lanes() {
		idle := l.Owner == outbox.ID{} && l.Floor == 0 && l.Swept == 0 && len(l.Needs) == 0 && !l.Crashed &&
			l.MarkedEvent == outbox.ID{}
		if !idle {
			addf("lane %d owner %s token %s floor %d swept %d needs %v crashed %v %d noted %s %d",
				l.Lane, l.Owner, l.Token, l.Floor, l.Swept, slices.Sorted(slices.Values(l.Needs)), l.Crashed, l.CrashCount,
				l.MarkedEvent, l.MarkedCount)
		}
	}
	for _, r := range m.mem.Relays() {
		addf("relay %s token %s ended %v holds %v beat %d expired %v told %v", r.Relay, r.Token, r.Ended, m.holdings(r.Relay),
			r.Number, r.Expired, told(r.Lanes))
	}
	for _, r := range m.mem.Topics() {
		addf("route %s %q paused %v by operator %v error %q", r.Relay, r.Topic, r.Paused, r.ByOperator, r.Error)
	}
	actions := m.mem.Actions()
	slices.SortFunc(actions, func(a, b memstore.ActionRow) int {
		return cmp.Or(slices.Compare(a.Action[:], b.Action[:]), slices.Compare(a.Event[:], b.Event[:]))
	})
	for _, a := range actions {
		addf("action %s %s of %s letter %d actor %q reason %q target %q", a.Action, a.Verb, a.Event, a.Letter, a.Actor,
			a.Reason, a.Target)
	}
	for _, p := range m.mem.Pauses() {
		addf("pause %s %q actor %q reason %q", p.Scope, p.Name, p.Actor, p.Reason)
	}
	for _, l := range m.mem.Limits() {
		addf("limit %q %v actor %q reason %q", l.Topic, l.Rate, l.Actor, l.Reason)
	}
	ends := []string{"open", "delivered", "failed", "canceled"}
	for _, r := range m.mem.Requests() {
		addf("request %d of %s for %s lane %d seq %d topic %q far %v %s taken %d by %s attempts %d error %q", r.ID, r.Action,
			r.Event, r.Lane, r.Seq, r.Topic, r.Due > day+apart/2, ends[r.State], r.Taken, r.TakenBy, r.Attempts, r.Error)
	}
	return m.dumped(lines), nil
}
