package memstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// RequestRow is a row of outbox_requests.
type RequestRow struct {
	ID       int64
	Action   outbox.ID
	Event    outbox.ID
	Lane     int16
	Seq      int64
	Topic    string
	State    core.RequestState
	Due      time.Duration
	TakenBy  outbox.ID // the tenure
	Taken    int
	Version  int64
	Attempts int32
	Error    string
	Canceled uint64 // the index that the next delivery had then
	Reverted bool   // a failover took back what was written down about it
}

// Record is the request as a checker wants it.
func (r *RequestRow) Record() check.Request {
	ends := map[core.RequestState]check.RequestEnd{
		core.RequestDelivered: check.RequestDelivered, core.RequestFailed: check.RequestFailed,
		core.RequestCanceled: check.RequestCanceled,
	}
	return check.Request{
		Request: r.ID, ID: r.Event, Action: r.Action, Topic: r.Topic, End: ends[r.State], Canceled: r.Canceled,
		TakenBack: r.Reverted,
	}
}

// Requests returns the requests, by number.
func (s *Store) Requests() []RequestRow { return slices.Clone(s.requests) }

// Redeliver makes requests for published events, due one after the other. Sent again, the action makes requests for
// those events only that it has none of.
func (s *Store) Redeliver(order Order, topic string, every time.Duration, events ...outbox.ID) ([]Result, error) {
	if err := s.write(); err != nil {
		return nil, err
	}
	if _, err := s.doneBefore(check.Redeliver, order, ""); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(s.requests, func(r RequestRow) bool { return r.Action == order.Action && r.Topic != topic }) {
		return nil, fmt.Errorf("memstore: the action's id was used before, for copies to another topic than %q", topic)
	}
	results := make([]Result, len(events))
	var rows []*row
	for i, id := range events {
		results[i] = Result{Event: id, Outcome: NotFound}
		r := s.events[id]
		switch {
		case r == nil || !r.visible:
			continue
		case slices.ContainsFunc(s.actions, func(a ActionRow) bool { return a.Action == order.Action && a.Event == id }):
			results[i].Outcome = DoneBefore
		case r.State != core.Published:
			results[i].Outcome = NotApplicable
		case slices.Contains(rows, r): // named twice
			results[i].Outcome = Done
		default:
			results[i].Outcome = Done
			rows = append(rows, r)
		}
		results[i].Was = r.State
	}
	slices.SortFunc(rows, func(a, b *row) int { return cmp.Compare(a.Seq, b.Seq) })
	begins := s.now() // a part is due behind what is open of the part before
	for i := range s.requests {
		if r := &s.requests[i]; every > 0 && r.Action == order.Action && r.State == core.RequestOpen {
			begins = max(begins, r.Due+every)
		}
	}
	for i, r := range rows {
		s.actions = append(s.actions, ActionRow{
			Action: order.Action, Verb: check.Redeliver, Event: r.ID, Actor: order.Actor, Reason: order.Reason,
			Next: s.config.Next(),
		})
		s.requested++
		s.requests = append(s.requests, RequestRow{
			ID: s.requested, Action: order.Action, Event: r.ID, Lane: r.Lane, Seq: r.Seq, Topic: topic,
			Due: begins + time.Duration(i)*every,
		})
	}
	if len(rows) > 0 {
		s.flush()
	}
	return results, nil
}

// cancel is a verb about no event, as those of pauses are.
const cancel check.Verb = "cancel"

// CancelRequests cancels the open requests of an action, but for those that the holder of their lane has in its hands:
// it says how many these are. When there are none, no copy is sent any more.
func (s *Store) CancelRequests(order Order, action outbox.ID) (canceled, inHands int, err error) {
	if err := s.write(); err != nil {
		return 0, 0, err
	}
	target := "requests of " + action.String()
	before, err := s.doneBefore(cancel, order, target)
	if err != nil {
		return 0, 0, err
	}
	isOpen := func(r RequestRow) bool { return r.Action == action && r.State == core.RequestOpen }
	logs := !before && slices.ContainsFunc(s.requests, isOpen)
	if logs {
		s.actions = append(s.actions, ActionRow{
			Action: order.Action, Verb: cancel, Actor: order.Actor, Reason: order.Reason, Target: target, Next: s.config.Next(),
		})
	}
	for i := range s.requests {
		r := &s.requests[i]
		lane := s.lane(r.Lane)
		switch {
		case !isOpen(*r):
		case r.TakenBy != outbox.ID{} && r.TakenBy == lane.token:
			inHands++
		default:
			r.Version++
			r.State, r.Canceled, r.TakenBy, r.Taken = core.RequestCanceled, s.config.Next(), outbox.ID{}, 0
			canceled++
		}
	}
	if canceled > 0 || logs {
		s.flush()
	}
	return canceled, inHands, nil
}

// doneBefore tells whether the action was done, and fails if it was another one.
func (s *Store) doneBefore(verb check.Verb, order Order, target string) (before bool, err error) {
	for _, action := range s.actions {
		if action.Action == order.Action && (action.Verb != verb || action.Target != target) {
			return false, fmt.Errorf("memstore: the action's id was used before, for a %s %s", action.Verb, action.Target)
		}
		before = before || action.Action == order.Action
	}
	return before, nil
}

// TakeRequests takes open requests that are due.
func (s *Store) TakeRequests(_ context.Context, take core.TakeRequests) (core.RequestsAnswer, error) {
	if err := s.write(); err != nil {
		return core.RequestsAnswer{}, err
	}
	answer := core.RequestsAnswer{Seen: s.seen(take.Owner, take.Lanes...)}
	chosen := s.requestsToTake(&take, &answer)
	answer.Forgotten = s.forgotten(&take, chosen)
	for _, r := range chosen {
		r.Taken++
		r.Version++
		r.TakenBy = s.lane(r.Lane).token
		answer.Requests = append(answer.Requests, core.Request{
			ID: r.ID, Action: r.Action, Topic: r.Topic, Taken: r.Taken, Attempts: r.Attempts,
			Version: r.Version, Event: s.events[r.Event].Event,
		})
	}
	if len(answer.Requests) > 0 {
		s.flush()
	}
	return answer, nil
}

// forgotten lists what the holder of the lanes has, neither in memory nor among what is taken now.
func (s *Store) forgotten(take *core.TakeRequests, chosen []*RequestRow) (forgotten []core.Request) {
	for _, number := range take.Lanes {
		if s.holding(take.Owner, number) == nil {
			continue
		}
		for _, r := range s.looked(number, take) {
			if r.TakenBy != s.lane(number).token || slices.Contains(take.InMemory, r.ID) || slices.Contains(chosen, r) {
				continue
			}
			event := s.events[r.Event].Event
			event.Payload, event.Headers = nil, nil
			forgotten = append(forgotten, core.Request{
				ID: r.ID, Action: r.Action, Topic: r.Topic, Attempts: r.Attempts, Version: r.Version, Event: event,
			})
		}
	}
	return forgotten
}

// requestsToTake chooses from all lanes. What may have killed relays is taken alone, when it is the first of its lane.
func (s *Store) requestsToTake(take *core.TakeRequests, answer *core.RequestsAnswer) (chosen []*RequestRow) {
	bytes, full := 0, false
	for _, number := range take.Lanes {
		if s.holding(take.Owner, number) == nil {
			continue
		}
		rows, missing := s.requestsOf(number, take)
		for _, eventType := range missing {
			answer.Missing = append(answer.Missing, core.LaneType{Lane: number, Type: eventType})
		}
		for n, r := range rows {
			alone := r.Taken >= core.TakesBeforeAlone
			if alone && n == 0 && take.Limit > 0 && !slices.ContainsFunc(chosen, isAlone) {
				chosen = []*RequestRow{r}
			}
			if alone || n == take.Limit || full || slices.ContainsFunc(chosen, isAlone) {
				break
			}
			bytes += s.events[r.Event].Event.Bytes()
			if full = len(chosen) > 0 && bytes > take.MaxBytes; full {
				break
			}
			chosen = append(chosen, r)
		}
	}
	return chosen
}

func isAlone(r *RequestRow) bool { return r.Taken >= core.TakesBeforeAlone }

// looked lists the first of the open requests of a lane that are due, in the order of their events.
func (s *Store) looked(lane int16, take *core.TakeRequests) (open []*RequestRow) {
	for i := range s.requests {
		if r := &s.requests[i]; r.Lane == lane && r.State == core.RequestOpen && r.Due <= s.now() {
			open = append(open, r)
		}
	}
	slices.SortFunc(open, func(a, b *RequestRow) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.ID, b.ID)) })
	return open[:min(len(open), take.Look)]
}

// requestsOf lists the requests of a lane that may be taken, in the order of their events, and the types of those whose
// types may not go.
func (s *Store) requestsOf(lane int16, take *core.TakeRequests) (rows []*RequestRow, missing []string) {
	type line struct {
		action    outbox.ID
		aggregate core.Aggregate
	}
	behind := map[line]bool{}
	for _, r := range s.looked(lane, take) {
		event := &s.events[r.Event].Event
		line := line{r.Action, event.Aggregate}
		paused := slices.Contains(take.PausedTypes, event.Type)
		if r.Topic != "" {
			paused = slices.Contains(take.PausedTopics, r.Topic)
		}
		paused = paused || slices.ContainsFunc(take.Busy, func(busy core.LaneTopic) bool {
			return busy.Lane == lane &&
				(busy.Topic == r.Topic || r.Topic == "" && slices.Contains(busy.Types, event.Type))
		})
		switch {
		case !slices.Contains(take.Types, event.Type):
			behind[line] = true
			missing = append(missing, event.Type)
		case !paused && !behind[line]:
			rows = append(rows, r)
		}
	}
	slices.Sort(missing)
	return rows, slices.Compact(missing)
}

// SettleRequests applies all of it if every lane is still the owner's, and otherwise nothing.
func (s *Store) SettleRequests(_ context.Context, settle *core.SettleRequests) (core.SettleAnswer, error) {
	if err := s.write(); err != nil {
		return core.SettleAnswer{}, err
	}
	var answer core.SettleAnswer
	for _, number := range settle.Lanes {
		if s.holding(settle.Owner, number) != nil {
			answer.Held = append(answer.Held, number)
		}
	}
	slices.Sort(answer.Held)
	if len(answer.Held) < len(settle.Lanes) || s.relay(settle.Owner) == nil {
		return answer, nil
	}
	for _, end := range settle.Ends {
		at := slices.IndexFunc(s.requests, func(r RequestRow) bool { return r.ID == end.ID })
		if at < 0 || s.requests[at].State != core.RequestOpen || s.requests[at].Lane != end.Lane {
			continue
		}
		r := &s.requests[at]
		if end.State == core.RequestOpen && end.Version != r.Version {
			continue // it was given back, and taken again
		}
		r.Version++
		r.State, r.Taken, r.TakenBy, r.Attempts = end.State, 0, outbox.ID{}, end.Attempts
		if end.State != core.RequestOpen || end.Error != "" { // one that is given back untried keeps its last error
			r.Error = end.Error
		}
	}
	s.flush()
	return core.SettleAnswer{Applied: true}, nil
}

// ForgetTaken forgets who has requests in hands.
func (s *Store) ForgetTaken() {
	for i := range s.requests {
		s.requests[i].TakenBy = outbox.ID{}
	}
}
