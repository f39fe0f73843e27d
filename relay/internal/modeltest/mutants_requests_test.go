package modeltest

import (
	"context"
	"slices"
	"strings"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// requestFaults are mistakes that a store could make with requests. Each must be found.
var requestFaults = map[string]func(m *model){
	"a heartbeat that does not tell of requests": func(m *model) {
		p := newMutant(m)
		p.beat = func(ctx context.Context, b core.Heartbeat) (core.HeartbeatAnswer, error) {
			answer, err := p.Store.Heartbeat(ctx, b)
			answer.Requested = false
			return answer, err
		}
	},
	"a take of what is behind a type that may not go": func(m *model) {
		p := newMutant(m)
		p.take = func(ctx context.Context, t core.TakeRequests) (core.RequestsAnswer, error) {
			look := t
			look.Limit = 0
			seen, err := p.Store.TakeRequests(ctx, look)
			if err != nil {
				return seen, err
			}
			t.Types, t.PausedTypes = eventTypes, slices.Clone(t.PausedTypes)
			for _, missing := range seen.Missing {
				t.PausedTypes = append(t.PausedTypes, missing.Type)
			}
			answer, err := p.Store.TakeRequests(ctx, t)
			answer.Missing = seen.Missing
			return answer, err
		}
	},
	"a take of a request that was canceled": func(m *model) {
		p := newMutant(m)
		p.take = func(ctx context.Context, t core.TakeRequests) (core.RequestsAnswer, error) {
			answer, err := p.Store.TakeRequests(ctx, t)
			for _, r := range m.mem.Requests() {
				if r.State == core.RequestCanceled && slices.Contains(t.Lanes, r.Lane) && !slices.Contains(answer.Lost, r.Lane) {
					event, _ := m.mem.Event(r.Event)
					answer.Requests = append(answer.Requests, core.Request{ID: r.ID, Action: r.Action, Taken: 1, Event: event})
					break
				}
			}
			return answer, err
		}
	},
	"a take of what goes to a busy topic": func(m *model) {
		p := newMutant(m)
		p.take = func(ctx context.Context, t core.TakeRequests) (core.RequestsAnswer, error) {
			t.Busy = nil
			return p.Store.TakeRequests(ctx, t)
		}
	},
	"a take that does not tell what the relay has": func(m *model) {
		p := newMutant(m)
		p.take = func(ctx context.Context, t core.TakeRequests) (core.RequestsAnswer, error) {
			answer, err := p.Store.TakeRequests(ctx, t)
			answer.Forgotten = nil
			return answer, err
		}
	},
	"a take that tells what the relay knows that it has": func(m *model) {
		p := newMutant(m)
		p.take = func(ctx context.Context, t core.TakeRequests) (core.RequestsAnswer, error) {
			t.InMemory = nil
			return p.Store.TakeRequests(ctx, t)
		}
	},
	"a take that counts no bytes": func(m *model) {
		p := newMutant(m)
		p.take = func(ctx context.Context, t core.TakeRequests) (core.RequestsAnswer, error) {
			t.MaxBytes = all
			return p.Store.TakeRequests(ctx, t)
		}
	},
	"a settle of requests that does not ask for its lanes": func(m *model) {
		p := newMutant(m)
		p.ends = func(ctx context.Context, s *core.SettleRequests) (core.SettleAnswer, error) {
			changed := *s
			changed.Lanes = nil
			return p.Store.SettleRequests(ctx, &changed)
		}
	},
	"a request given back that still is in hands": func(m *model) {
		p := newMutant(m)
		p.ends = func(ctx context.Context, s *core.SettleRequests) (core.SettleAnswer, error) {
			changed := *s
			changed.Ends = slices.DeleteFunc(slices.Clone(s.Ends), func(e core.RequestEnd) bool {
				return e.State == core.RequestOpen
			})
			return p.Store.SettleRequests(ctx, &changed)
		}
	},
	"a request given back by whoever had it before": func(m *model) {
		p := newMutant(m)
		p.ends = func(ctx context.Context, s *core.SettleRequests) (core.SettleAnswer, error) {
			changed := *s
			changed.Ends = slices.Clone(s.Ends)
			for i := range changed.Ends {
				changed.Ends[i].Version, _ = m.version(ctx, changed.Ends[i].ID)
			}
			return p.Store.SettleRequests(ctx, &changed)
		}
	},
	"a cancel of what a relay has in its hands": func(m *model) {
		m.cancelRequests = func(order memstore.Order, action outbox.ID) (canceled, inHands int, err error) {
			for _, r := range m.mem.Requests() {
				owner := ownerOf(m, r.Lane)
				if r.Action != action || r.TakenBy == (outbox.ID{}) || owner == (core.Owner{}) {
					continue
				}
				back := core.RequestEnd{
					ID: r.ID, Version: r.Version, Lane: r.Lane, Attempts: r.Attempts, Error: r.Error,
				}
				if _, err := m.mem.SettleRequests(context.Background(), &core.SettleRequests{
					Owner: owner, Lanes: []int16{r.Lane}, Ends: []core.RequestEnd{back},
				}); err != nil {
					return 0, 0, err
				}
			}
			return m.mem.CancelRequests(order, action)
		}
	},
	"a cancel that is not written to the log": func(m *model) {
		m.dumped = func(lines []string) []string {
			return slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, `target "requests of`) })
		}
	},
	"a cancel by an action that canceled others": func(m *model) {
		n := 0
		m.cancelRequests = func(order memstore.Order, action outbox.ID) (canceled, inHands int, err error) {
			if canceled, inHands, err = m.mem.CancelRequests(order, action); err != nil {
				n++
				return m.mem.CancelRequests(memstore.Order{Action: newID(actionID, 1_000_000+n), Actor: order.Actor}, action)
			}
			return canceled, inHands, err
		}
	},
}

// ownerOf is the relay that holds a lane.
func ownerOf(m *model, lane int16) core.Owner {
	holder := m.mem.Lanes()[lane-firstLane].Owner
	for _, relay := range m.mem.Relays() {
		if relay.Relay == holder {
			return relay.Owner
		}
	}
	return core.Owner{}
}
