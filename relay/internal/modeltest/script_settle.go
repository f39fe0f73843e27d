package modeltest

import (
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

func (s *script) settle() *step {
	if len(s.visible()) == 0 && !s.chance(5) {
		return nil
	}
	settle := &core.Settle{}
	for range 1 + s.rng.IntN(3) {
		h, ok := s.tenure(15)
		if !ok {
			break
		}
		if len(settle.Lanes) == 0 {
			settle.Owner = h.owner
		}
		if !slices.Contains(settle.Lanes, h.Lane) && (h.owner == settle.Owner || s.chance(10)) {
			settle.Lanes = append(settle.Lanes, h.Lane)
		}
	}
	// Nobody's lanes. Rare, because it always succeeds for a relay that is there.
	if len(settle.Lanes) == 0 {
		if !s.chance(20) {
			return nil
		}
		settle.Owner = s.owner(15)
	}
	for _, id := range s.someIDs(5) {
		s.decide(settle, id)
	}
	if len(settle.Lanes) > 0 && s.chance(15) {
		settle.ClearNotes = some(s, settle.Lanes, 1)
	}
	settlement := &settlement{settle: settle, read: map[side]*core.Settle{}}
	s.settled = append(s.settled[max(0, len(s.settled)-4):], settlement)
	if stops := settlement.stops(); len(stops) > 0 && s.chance(30) { // undone, and sent again
		s.planned = append(s.planned, func() *step { return s.takeBack(stops) }, func() *step {
			step := s.settling(settlement)
			step.kind = "settle_again"
			return step
		})
	}
	return s.settling(settlement)
}

// takeBack is what an operator does who wants events back that were parked or are dead.
func (s *script) takeBack(ids []outbox.ID) *step {
	order := order{Action: s.newID(actionID), Actor: "ann", Reason: "fixed"}
	verb, kind := check.Free, "free"
	for _, id := range ids {
		switch event, _ := s.model.mem.Event(id); {
		case event.State == core.Parked && len(order.Events) == 0, event.State == core.Parked && verb == check.Free:
			order.Events = append(order.Events, id)
		case event.State == core.DeadBlocking || event.State == core.Dead:
			if len(order.Events) == 0 || verb == check.Redrive {
				verb, kind = check.Redrive, "redrive"
				order.Events = append(order.Events, id)
			}
		}
	}
	if len(order.Events) == 0 {
		return nil
	}
	step := &step{
		kind: kind, what: fmt.Sprintf("%+v", order),
		do: func(ctx context.Context, side side) ([]string, error) { return side.operate(ctx, verb, order) },
	}
	step.learn = func(answer []string) { s.saw["settles_undone"] += len(answer) }
	return step
}

// settlement is a settle that may be sent again, on each side with the rows as they were read the first time.
type settlement struct {
	settle *core.Settle
	read   map[side]*core.Settle
}

// on is the settle for one of the sides.
func (st *settlement) on(ctx context.Context, side side) (_ *core.Settle, err error) {
	if settle := st.read[side]; settle != nil {
		return settle, nil
	}
	settle := *st.settle
	settle.Published, settle.Wait = slices.Clone(settle.Published), slices.Clone(settle.Wait)
	settle.Retry, settle.Park, settle.Dead = slices.Clone(settle.Retry), slices.Clone(settle.Park),
		slices.Clone(settle.Dead)
	for _, found := range foundIn(&settle) {
		if *found, err = side.found(ctx, found.ID); err != nil {
			return nil, err
		}
	}
	st.read[side] = &settle
	return &settle, nil
}

// foundIn are all the rows that a settle is about.
func foundIn(settle *core.Settle) (all []*core.Found) {
	for i := range settle.Published {
		all = append(all, &settle.Published[i])
	}
	for i := range settle.Retry {
		all = append(all, &settle.Retry[i].Found)
	}
	for i := range settle.Wait {
		all = append(all, &settle.Wait[i])
	}
	for i := range settle.Park {
		all = append(all, &settle.Park[i].Found)
	}
	for i := range settle.Dead {
		all = append(all, &settle.Dead[i].Found)
	}
	return all
}

// stops are the events that the settle parks or declares dead.
func (st *settlement) stops() (ids []outbox.ID) {
	for _, park := range st.settle.Park {
		ids = append(ids, park.ID)
	}
	for _, death := range st.settle.Dead {
		ids = append(ids, death.ID)
	}
	return ids
}

// stopped are the events that the last settles have parked or declared dead.
func (s *script) stopped() (ids []outbox.ID) {
	for _, settlement := range s.settled {
		ids = append(ids, settlement.stops()...)
	}
	return ids
}

// undone are the last settles of which an operator has undone something since, or a relay that knows the type.
func (s *script) undone() []*settlement {
	return slices.DeleteFunc(slices.Clone(s.settled), func(st *settlement) bool {
		return !slices.ContainsFunc(st.stops(), func(id outbox.ID) bool {
			event, _ := s.model.mem.Event(id)
			return event.State == core.Retrying
		})
	})
}

// someIDs are of events, different ones, mostly committed and open, but also others.
func (s *script) someIDs(most int) []outbox.ID {
	var ids []outbox.ID
	rows := s.visible(core.Ready, core.Retrying, core.Parked, core.Waiting)
	if len(rows) > 0 && s.chance(60) { // all of one aggregate, where they stand in each other's way
		of := pick(s, rows).Aggregate
		rows = slices.DeleteFunc(rows, func(r memstore.EventRow) bool { return r.Aggregate != of })
	}
	for range s.rng.IntN(most + 1) {
		var id outbox.ID
		switch {
		case len(rows) > 0 && s.chance(85):
			id = pick(s, rows).ID
		case len(s.events) > 0:
			id = pick(s, s.events)
		default:
			id = s.newID(eventID)
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// decide adds what became of an event.
func (s *script) decide(settle *core.Settle, id outbox.ID) {
	problem := pick(s, []string{"refused", "timed out", ""})
	found := core.Found{ID: id} // the rest is another on each side
	if s.blocked(id) && s.chance(60) {
		settle.Wait = append(settle.Wait, found)
		return
	}
	switch s.rng.IntN(10) {
	case 0, 1:
		settle.Published = append(settle.Published, found)
	case 2, 3:
		settle.Retry = append(settle.Retry, core.Retry{
			Found: found, Attempts: int32(s.rng.IntN(5)), Delay: pick(s, []time.Duration{0, 0, far}), Error: problem,
		})
	case 4, 5:
		settle.Wait = append(settle.Wait, found)
	case 6, 7:
		settle.Park = append(settle.Park, core.Park{Found: found, Error: problem})
	default:
		settle.Dead = append(settle.Dead, core.Death{
			Found: found, Blocking: s.chance(70), Attempts: int32(s.rng.IntN(5)),
			Topic:  pick(s, []string{"orders", "freight", ""}),
			Reason: pick(s, []string{"max_attempts", "rejected", "too_large"}), Detail: problem,
		})
	}
}

// blocked tells whether a dead event of the same aggregate blocks this one.
func (s *script) blocked(id outbox.ID) bool {
	event, found := s.model.mem.Event(id)
	return found && slices.ContainsFunc(s.visible(core.DeadBlocking), func(head memstore.EventRow) bool {
		return head.Aggregate == event.Aggregate && head.Seq < event.Seq
	})
}

// followed are the heads of those rows that another event waits behind.
func (s *script) followed(rows []memstore.EventRow) []memstore.EventRow {
	waiting := s.visible(core.Waiting)
	return slices.DeleteFunc(slices.Clone(rows), func(head memstore.EventRow) bool {
		return head.State != core.DeadBlocking || !slices.ContainsFunc(waiting, func(w memstore.EventRow) bool {
			return w.Aggregate == head.Aggregate && w.Seq > head.Seq
		})
	})
}

func (s *script) settling(settlement *settlement) *step {
	settle := settlement.settle
	step := queryStep(fmt.Sprintf("%+v", *settle),
		func(ctx context.Context, side side, store core.Store) ([]string, error) {
			read, err := settlement.on(ctx, side)
			if err != nil {
				return nil, err
			}
			answer, err := store.Settle(ctx, read)
			if answer.Applied {
				slices.SortFunc(answer.Unchanged, func(a, b outbox.ID) int { return slices.Compare(a[:], b[:]) })
				return []string{"applied", fmt.Sprintf("unchanged %v", answer.Unchanged)}, err
			}
			slices.Sort(answer.Held)
			return []string{fmt.Sprintf("refused, held %v", answer.Held)}, err
		})
	step.learn = func(answer []string) {
		if settle.Size() == 0 {
			return
		}
		if answer[0] == "applied" {
			s.saw["settles_applied"]++
			if answer[1] != "unchanged []" {
				s.saw["settles_too_late"]++
			}
		} else {
			s.saw["settles_refused"]++
		}
	}
	return step
}

func (s *script) settleAgain() *step {
	if len(s.settled) == 0 {
		return nil
	}
	if undone := s.undone(); len(undone) > 0 && s.chance(80) {
		return s.settling(pick(s, undone))
	}
	return s.settling(pick(s, s.settled))
}

func (s *script) unpark() *step {
	unpark := core.Unpark{
		Owner: s.owner(20), Lanes: core.FromStart(some(s, s.lanes, 1)...), Types: some(s, eventTypes, 1),
		Limit: pick(s, []int{1, 2, 3, all}),
	}
	return writeStep(unpark, func(ctx context.Context, store core.Store) error { return unparkPages(ctx, store, unpark) })
}

// unparkPages goes on until a page is not full.
func unparkPages(ctx context.Context, store core.Store, unpark core.Unpark) error {
	for {
		answer, err := store.Unpark(ctx, unpark)
		if err != nil || answer.Looked < unpark.Limit {
			return err
		}
		at := slices.IndexFunc(unpark.Lanes, func(from core.LaneFrom) bool { return from.Lane == answer.Lane })
		unpark.Lanes = slices.Clone(unpark.Lanes[at:])
		unpark.Lanes[0].After = answer.End
	}
}

func (s *script) heldKeys() *step {
	asked := core.HeldKeys{
		Owner: s.asker(), Lanes: core.AllLines(some(s, s.lanes, 1)...), Limit: pick(s, []int{1, 2, 3, all}),
	}
	step := queryStep(asked, func(ctx context.Context, _ side, store core.Store) ([]string, error) {
		return keyPages(ctx, store, asked)
	})
	step.learn = func(answer []string) {
		s.saw["held_keys"] += len(answer) - 1
		if answer[0] != "lost []" {
			s.saw["looks_at_lost_lanes"]++
		}
	}
	return step
}

// keyPages goes on until a page is not full. The lanes come in the order asked for.
func keyPages(ctx context.Context, store core.Store, held core.HeldKeys) (lines []string, err error) {
	for {
		answer, err := store.HeldKeys(ctx, held)
		if lines == nil {
			lines = lostLines(answer.Seen)
		}
		lines = append(lines, keyLines(answer.Keys)...)
		if err != nil || len(answer.Keys) < held.Limit {
			return lines, err
		}
		last := answer.Keys[len(answer.Keys)-1]
		at := slices.IndexFunc(held.Lanes, func(from core.LaneLines) bool { return from.Lane == last.Lane })
		held.Lanes = slices.Clone(held.Lanes[at:])
		held.Lanes[0].After = core.HeldLine{Aggregate: last.Aggregate, EventType: last.EventType}
	}
}

func lostLines(seen core.Seen) []string {
	slices.Sort(seen.Lost)
	return []string{fmt.Sprintf("lost %v", seen.Lost)}
}

func keyLines(keys []core.HeldKey) []string {
	var lines []string
	for _, k := range keys {
		due := k.State == core.Retrying && k.DueIn < time.Hour
		lines = append(lines, fmt.Sprintf("lane %d %v %s state %d due %v", k.Lane, k.Aggregate, k.EventType, k.State, due))
	}
	slices.Sort(lines)
	return lines
}

func (s *script) dueKeys() *step {
	due := core.DueKeys{Owner: s.asker(), Limit: pick(s, []int{1, 1, 1, 2, all})}
	for _, lane := range some(s, s.lanes, 1) {
		due.Lanes = append(due.Lanes, core.LaneFrom{Lane: lane})
	}
	if s.chance(40) {
		due.Exclude = some(s, eventTypes, 1)
	}
	step := queryStep(due, func(ctx context.Context, _ side, store core.Store) ([]string, error) {
		return duePages(ctx, store, due)
	})
	step.learn = func(answer []string) {
		for _, line := range answer {
			if strings.HasPrefix(line, "page 1 ") {
				s.saw["due_pages"]++
			} else if strings.HasPrefix(line, "lane ") {
				s.saw["due_keys"]++
			}
		}
	}
	return step
}

// duePages goes through all pages of each lane. How rows of one page are ordered depends on the clock, and the model's
// stands still; what all pages have together, and how long each of them is, does not.
func duePages(ctx context.Context, store core.Store, due core.DueKeys) (lines []string, err error) {
	var found []core.HeldKey
	for page := 0; len(due.Lanes) > 0; page++ {
		answer, err := store.DueKeys(ctx, due)
		if err != nil {
			return nil, err
		}
		ends, count := map[int16]core.HeldPlace{}, map[int16]int{}
		for _, key := range answer.Keys {
			ends[key.Lane] = key.Place
			count[key.Lane]++
		}
		var more []core.LaneFrom
		for _, query := range due.Lanes {
			lines = append(lines, fmt.Sprintf("page %d of lane %d: %d", page, query.Lane, count[query.Lane]))
			if count[query.Lane] >= due.Limit {
				more = append(more, core.LaneFrom{Lane: query.Lane, After: ends[query.Lane]})
			}
		}
		found, due.Lanes = append(found, answer.Keys...), more
	}
	return append(lines, keyLines(found)...), nil
}

func (s *script) heldRows() *step {
	var queries []core.HeldAsk
	for _, aggregate := range some(s, s.aggregates, 1) {
		query := core.HeldAsk{Lane: s.laneOf[aggregate], Aggregate: aggregate, Types: eventTypes}
		switch s.rng.IntN(10) {
		case 0:
			query.Lane = pick(s, s.lanes) // perhaps not its own
		case 1, 2, 3:
			query.Types = some(s, eventTypes, 0)
		}
		queries = append(queries, query)
	}
	held := core.HeldRows{Owner: s.asker(), Asks: queries, Limit: pick(s, []int{1, 2, 3, all})}
	step := queryStep(held, func(ctx context.Context, _ side, store core.Store) ([]string, error) {
		rows, err := store.HeldRows(ctx, held)
		lines := lostLines(rows.Seen)
		for i := range rows.Events {
			lines = append(lines, line(&rows.Events[i]))
		}
		return lines, err
	})
	step.learn = func(answer []string) { s.saw["held_rows"] += len(answer) - 1 }
	return step
}

func (s *script) oldParked() *step {
	old := core.OldParked{
		Owner: s.asker(), Lanes: core.FromStart(some(s, s.lanes, 1)...), Age: pick(s, []time.Duration{0, 0, 0, far}),
		Limit: pick(s, []int{1, 2, 3, all}),
	}
	if s.chance(50) {
		old.Exclude = []string{pick(s, eventTypes)}
	}
	step := queryStep(old, func(ctx context.Context, _ side, store core.Store) ([]string, error) {
		return parkedPages(ctx, store, old)
	})
	step.learn = func(answer []string) { s.saw["old_parked"] += len(answer) }
	return step
}

// parkedPages goes on until a page is not full.
func parkedPages(ctx context.Context, store core.Store, old core.OldParked) (lines []string, err error) {
	for {
		answer, err := store.OldParked(ctx, old)
		for i := range answer.Events {
			lines = append(lines, line(&answer.Events[i]))
		}
		if err != nil || answer.Looked < old.Limit {
			slices.Sort(lines)
			return lines, err
		}
		at := slices.IndexFunc(old.Lanes, func(from core.LaneFrom) bool { return from.Lane == answer.Lane })
		old.Lanes = slices.Clone(old.Lanes[at:])
		old.Lanes[0].After = answer.End
	}
}

func (s *script) redrive() *step {
	return s.operating(check.Redrive, core.DeadBlocking, core.Dead)
}

func (s *script) skip() *step { return s.operating(check.Skip, core.DeadBlocking) }

func (s *script) free() *step { return s.operating(check.Free, core.Parked, core.Waiting) }

func (s *script) discard() *step {
	return s.operating(check.Discard, core.DeadBlocking, core.Dead)
}

// operating is a verb on events that it is for, and rarely on some that it is not for.
func (s *script) operating(verb check.Verb, states ...core.State) *step {
	rows := s.visible(states...)
	if s.chance(10) {
		rows = s.visible()
	}
	if heads := s.followed(rows); len(heads) > 0 && s.chance(70) {
		rows = heads
	}
	if stopped := s.stopped(); s.chance(40) { // so that a settle that is sent again finds it undone
		others := func(r memstore.EventRow) bool { return !slices.Contains(stopped, r.ID) }
		if these := slices.DeleteFunc(slices.Clone(rows), others); len(these) > 0 {
			rows = these
		}
	}
	if len(rows) == 0 {
		return nil
	}
	order := order{Action: s.newID(actionID), Actor: "ann", Reason: pick(s, []string{"wrong", "fixed"})}
	for range 1 + s.rng.IntN(3) {
		if id := pick(s, rows).ID; !slices.Contains(order.Events, id) {
			order.Events = append(order.Events, id)
		}
	}
	if s.chance(10) {
		order.Action = newID(actionID, max(s.ids[actionID]-1, 1)) // sent before, for these events or others
	}
	if s.chance(5) {
		order.Events = append(order.Events, s.newID(eventID)) // that nobody ever wrote
	}
	step := &step{
		what: fmt.Sprintf("%+v", order),
		do:   func(ctx context.Context, side side) ([]string, error) { return side.operate(ctx, verb, order) },
	}
	step.learn = func(answer []string) {
		for _, line := range answer {
			if strings.Contains(line, " done, ") {
				s.saw["verbs_done"]++
			} else {
				s.saw["verbs_refused"]++
			}
		}
	}
	return step
}
