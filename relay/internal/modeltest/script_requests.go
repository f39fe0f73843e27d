package modeltest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// redelivery is a decision to deliver events again.
type redelivery struct {
	order
	topic string
	slow  bool // each is due far behind the one before it
}

// cancellation is a decision to cancel what another asked for.
type cancellation struct {
	order
	of outbox.ID
}

// requestTopics are those that requests name.
var requestTopics = []string{"orders", "copies"}

// redeliver asks for published events once more, and rarely for others.
func (s *script) redeliver() *step {
	const enough = 4 // for an order among them
	if len(s.planned) == 0 && len(s.visible(core.Published)) < enough && s.chance(80) {
		s.planned = append(s.planned, s.publish, s.redeliver)
		return nil
	}
	asked := redelivery{
		order: order{Action: s.newID(actionID), Actor: "ann", Reason: pick(s, []string{"", "a new consumer"})},
		topic: pick(s, append([]string{"", "", ""}, requestTopics...)), slow: s.chance(15),
	}
	if s.chance(10) {
		asked.Action = newID(actionID, max(s.ids[actionID]-1, 1)) // sent before, for this or for something else
	}
	if asked.Events = s.published(5); len(asked.Events) == 0 {
		return nil
	}
	s.redeliveries = append(s.redeliveries, asked)
	if s.chance(60) {
		s.planned = append(s.planned, s.takeRequests, pick(s, []func() *step{s.cancel, s.settleRequests}))
	}
	return s.redelivering(asked)
}

// publish settles what is ready in a lane as published: left to chance, too little is.
func (s *script) publish() *step {
	rows := s.visible(core.Ready)
	held := slices.DeleteFunc(s.held(), func(h hold) bool {
		return !slices.ContainsFunc(rows, func(r memstore.EventRow) bool { return r.Lane == h.Lane })
	})
	if len(held) == 0 {
		return nil
	}
	h := pick(s, held)
	settle := &core.Settle{Owner: h.owner, Lanes: []int16{h.Lane}}
	for _, r := range rows {
		if r.Lane == h.Lane && s.chance(90) {
			settle.Published = append(settle.Published, core.Found{ID: r.ID})
		}
	}
	step := s.settling(&settlement{settle: settle, read: map[side]*core.Settle{}})
	step.kind = "settle"
	return step
}

// redeliverAgain sends a decision again, now and then with more events.
func (s *script) redeliverAgain() *step {
	if len(s.redeliveries) == 0 {
		return nil
	}
	asked := pick(s, s.redeliveries)
	asked.Events = some(s, asked.Events, 1)
	for _, id := range s.published(3) {
		if !slices.Contains(asked.Events, id) {
			asked.Events = append(asked.Events, id)
		}
	}
	return s.redelivering(asked)
}

// published are some events that are, and rarely others. None: there is nothing to ask for.
func (s *script) published(most int) (ids []outbox.ID) {
	rows := s.visible(core.Published)
	if s.chance(10) {
		rows = s.visible()
	}
	if len(rows) == 0 {
		return nil
	}
	for range 1 + s.rng.IntN(most) {
		if id := pick(s, rows).ID; !slices.Contains(ids, id) || s.chance(10) {
			ids = append(ids, id)
		}
	}
	if s.chance(5) {
		ids = append(ids, s.newID(eventID)) // that nobody ever wrote
	}
	return ids
}

func (s *script) redelivering(asked redelivery) *step {
	return &step{
		kind: "redeliver", what: fmt.Sprintf("%+v", asked),
		do: func(ctx context.Context, side side) ([]string, error) { return side.redeliver(ctx, asked) },
		learn: func(answer []string) {
			for _, line := range answer {
				switch {
				case strings.Contains(line, " done, "):
					s.saw["requests_made"]++
				case strings.Contains(line, " done before, "):
					s.saw["requests_made_before"]++
				default:
					s.saw["requests_refused"]++
				}
			}
		},
	}
}

// cancel cancels what a decision asked for, and rarely what none did.
func (s *script) cancel() *step {
	if len(s.redeliveries) == 0 {
		return nil
	}
	canceling := cancellation{
		order: order{Action: s.newID(actionID), Actor: "ann", Reason: "not needed"}, of: pick(s, s.redeliveries).Action,
	}
	rows := slices.DeleteFunc(s.model.mem.Requests(), func(r memstore.RequestRow) bool {
		return r.State != core.RequestOpen
	})
	taken := slices.DeleteFunc(slices.Clone(rows), func(r memstore.RequestRow) bool { return r.Taken == 0 })
	if len(taken) > 0 {
		rows = taken
	}
	if len(rows) > 0 && s.chance(70) {
		canceling.of = pick(s, rows).Action
	}
	switch {
	case len(s.cancellations) > 0 && s.chance(20):
		canceling = pick(s, s.cancellations) // sent again
	case len(s.cancellations) > 0 && s.chance(50):
		canceling.Action = pick(s, s.cancellations).Action // sent before, for this or for another
	case s.chance(5):
		canceling.of = s.newID(actionID)
	}
	s.cancellations = append(s.cancellations, canceling)
	return &step{
		kind: "cancel", what: fmt.Sprintf("%+v", canceling),
		do: func(ctx context.Context, side side) ([]string, error) { return side.cancel(ctx, canceling) },
		learn: func(answer []string) {
			if !strings.HasPrefix(answer[0], "canceled 0") {
				s.saw["requests_canceled"]++
			}
			if !strings.HasSuffix(answer[0], " left 0") {
				s.saw["requests_in_hands"]++
			}
		},
	}
}

// takeRequests is for a relay that holds lanes, mostly with open requests.
func (s *script) takeRequests() *step {
	h, ok := s.tenure(10)
	if open := s.withRequests(); len(open) > 0 && s.chance(80) {
		h, ok = pick(s, open), true
	}
	if !ok {
		return nil
	}
	take := core.TakeRequests{
		Owner: h.owner, Limit: pick(s, []int{1, 2, all, all, all, all}), Look: pick(s, []int{1, 2, 3, all, all}),
		MaxBytes: all, Types: eventTypes,
	}
	take.Lanes = append(some(s, slices.DeleteFunc(slices.Clone(s.lanes), func(lane int16) bool {
		return lane == h.Lane
	}), 0), h.Lane)
	s.rng.Shuffle(len(take.Lanes), func(i, j int) { take.Lanes[i], take.Lanes[j] = take.Lanes[j], take.Lanes[i] })
	if s.chance(40) {
		take.Types = some(s, eventTypes, 1)
	}
	if s.chance(20) {
		take.PausedTypes = some(s, eventTypes, 1)
	}
	if s.chance(20) {
		take.PausedTopics = some(s, requestTopics, 1)
	}
	for _, lane := range take.Lanes {
		if s.busy.IntN(100) < 15 {
			take.Busy = append(take.Busy, core.LaneTopic{
				Lane: lane, Topic: requestTopics[s.busy.IntN(len(requestTopics))], Types: eventTypes[:s.busy.IntN(3)],
			})
		}
	}
	take.InMemory = s.inMemory()
	if s.busy.IntN(100) < 40 { // a look behind it at what it took
		look := take
		look.Limit = 0
		s.planned = append(s.planned, func() *step {
			look.InMemory = s.inMemory()
			return s.taking(look)
		})
	}
	if s.chance(35) {
		take.MaxBytes = s.rng.IntN(1500)
	}
	if s.chance(25) { // its owner dies of it, or so it seems
		s.planned = append(s.planned, func() *step { return s.taking(take) }, func() *step { return s.taking(take) },
			func() *step { return s.taking(take) })
	}
	return s.taking(take)
}

// inMemory are some of the requests that a relay may have.
func (s *script) inMemory() (ids []int64) {
	for _, r := range s.model.mem.Requests() {
		if r.Taken > 0 && s.busy.IntN(100) < 50 {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// withRequests are the tenures that hold a lane which has open requests.
func (s *script) withRequests() []hold {
	return slices.DeleteFunc(s.held(), func(h hold) bool {
		return !slices.ContainsFunc(s.model.mem.Requests(), func(r memstore.RequestRow) bool {
			return r.Lane == h.Lane && r.State == core.RequestOpen
		})
	})
}

func (s *script) taking(take core.TakeRequests) *step {
	step := queryStep(fmt.Sprintf("%+v", take), func(ctx context.Context, _ side, store core.Store) ([]string, error) {
		answer, err := store.TakeRequests(ctx, take)
		lines := lostLines(answer.Seen)
		for i := range answer.Requests {
			r := &answer.Requests[i]
			lines = append(lines, fmt.Sprintf("request %d of %s topic %q taken %d: %s", r.ID, r.Action, r.Topic, r.Taken,
				line(&r.Event)))
		}
		for i := range answer.Forgotten {
			r := &answer.Forgotten[i]
			lines = append(lines, fmt.Sprintf("forgotten %d of %s topic %q taken %d, %d attempts: %s", r.ID, r.Action, r.Topic,
				r.Taken, r.Attempts, line(&r.Event)))
		}
		return append(lines, missingLines(answer.Missing)...), err
	})
	step.kind = "take_requests"
	step.learn = func(answer []string) {
		if answer[0] != "lost []" {
			s.saw["takes_of_lost_lanes"]++
		}
		for _, line := range answer[1:] {
			switch {
			case strings.HasPrefix(line, "request "):
				s.saw["requests_taken"]++
			case strings.HasPrefix(line, "forgotten "):
				s.saw["requests_forgotten"]++
			default:
				s.saw["requests_of_missing_types"]++
			}
			if strings.Contains(line, " taken 4: ") {
				s.saw["requests_taken_alone"]++
			}
		}
	}
	return step
}

func missingLines(types []core.LaneType) (lines []string) {
	for _, missing := range types {
		lines = append(lines, fmt.Sprintf("lane %d misses %s", missing.Lane, missing.Type))
	}
	slices.Sort(lines)
	return lines
}

// settleRequests writes down how requests ended: mostly those that somebody has in hands.
func (s *script) settleRequests() *step {
	rows := s.model.mem.Requests()
	h, ok := s.tenure(40)
	if open := s.withRequests(); len(open) > 0 && s.chance(65) {
		h, ok = pick(s, open), true
	}
	if lost := s.lost(); len(lost) > 0 && s.chance(20) {
		h, ok = pick(s, lost), true
	}
	if !ok || len(rows) == 0 {
		return nil
	}
	settle := &core.SettleRequests{Owner: h.owner, Lanes: []int16{h.Lane}}
	for _, other := range s.held() {
		if other.owner == h.owner && !slices.Contains(settle.Lanes, other.Lane) || s.chance(3) {
			settle.Lanes = append(settle.Lanes, other.Lane)
		}
	}
	if mine := slices.DeleteFunc(slices.Clone(rows), func(r memstore.RequestRow) bool {
		return !slices.Contains(settle.Lanes, r.Lane) || r.State != core.RequestOpen
	}); len(mine) > 0 && s.chance(80) {
		rows = mine
	}
	for _, r := range some(s, rows, 1) {
		// The version is what each side has, and this more.
		end := core.RequestEnd{ID: r.ID, Lane: r.Lane, Attempts: int32(s.rng.IntN(5))}
		if s.busy.IntN(100) < 10 {
			end.Version = -1
		}
		end.State = pick(s, []core.RequestState{core.RequestOpen, core.RequestDelivered, core.RequestFailed})
		if end.State == core.RequestFailed {
			end.Error = pick(s, []string{"refused", "too large"})
		}
		if s.chance(3) {
			end.Lane = pick(s, s.lanes)
		}
		settle.Ends = append(settle.Ends, end)
	}
	return s.settlingRequests(settle)
}

// lost are the tenures that hold their lane no more.
func (s *script) lost() []hold {
	held := s.held()
	return slices.DeleteFunc(slices.Clone(s.holds), func(h hold) bool { return slices.Contains(held, h) })
}

// settlingRequests settles them with the versions that each side has, unless a script says another.
func (s *script) settlingRequests(settle *core.SettleRequests) *step {
	run := func(ctx context.Context, on side, store core.Store) ([]string, error) {
		changed := *settle
		changed.Ends = slices.Clone(settle.Ends)
		for i := range changed.Ends {
			version, err := on.version(ctx, changed.Ends[i].ID)
			if err != nil {
				return nil, err
			}
			changed.Ends[i].Version += version
		}
		answer, err := store.SettleRequests(ctx, &changed)
		if answer.Applied {
			return []string{"applied"}, err
		}
		slices.Sort(answer.Held)
		return []string{fmt.Sprintf("refused, held %v", slices.Compact(answer.Held))}, err
	}
	step := queryStep(fmt.Sprintf("%+v", *settle), run)
	step.kind = "settle_requests"
	step.learn = func(answer []string) {
		if answer[0] == "applied" {
			s.saw["requests_settled"]++
			if slices.ContainsFunc(settle.Ends, func(e core.RequestEnd) bool {
				return e.State == core.RequestOpen && e.Version != 0
			}) {
				s.saw["requests_given_back_late"]++
			}
		} else {
			s.saw["request_settles_refused"]++
		}
	}
	return step
}
