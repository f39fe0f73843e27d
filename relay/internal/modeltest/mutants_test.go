package modeltest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// mutantStore is a store in which some methods are wrong; the others are those of the right one.
type mutantStore struct {
	*memstore.Store
	settle  func(context.Context, *core.Settle) (core.SettleAnswer, error)
	read    func(context.Context, core.Read) (core.ReadAnswer, error)
	acquire func(context.Context, core.Acquire) (core.AcquireAnswer, error)
	unpark  func(context.Context, core.Unpark) (core.UnparkAnswer, error)
	fence   func(context.Context) (core.Fence, error)
	beat    func(context.Context, core.Heartbeat) (core.HeartbeatAnswer, error)
	release func(context.Context, core.Release) error
	end     func(context.Context, core.EndExpired) ([]outbox.ID, error)
	rows    func(context.Context, core.HeldRows) (core.RowsAnswer, error)
	due     func(context.Context, core.DueKeys) (core.KeysAnswer, error)
	sweep   func(context.Context, core.Sweep) (core.SweepAnswer, error)
	topics  func(context.Context, outbox.ID, []core.RouteStatus) error
	take    func(context.Context, core.TakeRequests) (core.RequestsAnswer, error)
	ends    func(context.Context, *core.SettleRequests) (core.SettleAnswer, error)
}

func newMutant(m *model) *mutantStore {
	mem := m.mem
	p := &mutantStore{
		Store: mem, settle: mem.Settle, read: mem.Read, acquire: mem.Acquire, unpark: mem.Unpark, fence: mem.Fence,
		beat:    mem.Heartbeat,
		release: mem.Release, end: mem.EndExpired, rows: mem.HeldRows, due: mem.DueKeys, sweep: mem.Sweep,
		topics: mem.SaveRoutes, take: mem.TakeRequests, ends: mem.SettleRequests,
	}
	m.answers = p
	return p
}

func (p *mutantStore) Settle(ctx context.Context, s *core.Settle) (core.SettleAnswer, error) {
	return p.settle(ctx, s)
}

func (p *mutantStore) Read(ctx context.Context, r core.Read) (core.ReadAnswer, error) {
	return p.read(ctx, r)
}

func (p *mutantStore) Acquire(ctx context.Context, a core.Acquire) (core.AcquireAnswer, error) {
	return p.acquire(ctx, a)
}

func (p *mutantStore) Unpark(ctx context.Context, u core.Unpark) (core.UnparkAnswer, error) {
	return p.unpark(ctx, u)
}
func (p *mutantStore) Fence(ctx context.Context) (core.Fence, error)     { return p.fence(ctx) }
func (p *mutantStore) Release(ctx context.Context, r core.Release) error { return p.release(ctx, r) }

func (p *mutantStore) Heartbeat(ctx context.Context, b core.Heartbeat) (core.HeartbeatAnswer, error) {
	return p.beat(ctx, b)
}

func (p *mutantStore) EndExpired(ctx context.Context, e core.EndExpired) ([]outbox.ID, error) {
	return p.end(ctx, e)
}

func (p *mutantStore) HeldRows(ctx context.Context, h core.HeldRows) (core.RowsAnswer, error) {
	return p.rows(ctx, h)
}

func (p *mutantStore) DueKeys(ctx context.Context, d core.DueKeys) (core.KeysAnswer, error) {
	return p.due(ctx, d)
}

func (p *mutantStore) Sweep(ctx context.Context, s core.Sweep) (core.SweepAnswer, error) {
	return p.sweep(ctx, s)
}

func (p *mutantStore) SaveRoutes(ctx context.Context, relay outbox.ID, r []core.RouteStatus) error {
	return p.topics(ctx, relay, r)
}

func (p *mutantStore) TakeRequests(ctx context.Context, t core.TakeRequests) (core.RequestsAnswer, error) {
	return p.take(ctx, t)
}

func (p *mutantStore) SettleRequests(ctx context.Context, s *core.SettleRequests) (core.SettleAnswer, error) {
	return p.ends(ctx, s)
}

// faults are mistakes that a store could make. Each must be found. Those about requests are in another file.
var faults = map[string]func(m *model){
	"a heartbeat that does not tell of pauses": func(m *model) {
		p := newMutant(m)
		p.beat = func(ctx context.Context, b core.Heartbeat) (core.HeartbeatAnswer, error) {
			answer, err := p.Store.Heartbeat(ctx, b)
			answer.Pauses = nil
			return answer, err
		}
	},
	"a heartbeat that does not tell of limits": func(m *model) {
		p := newMutant(m)
		p.beat = func(ctx context.Context, b core.Heartbeat) (core.HeartbeatAnswer, error) {
			answer, err := p.Store.Heartbeat(ctx, b)
			answer.Limits = nil
			return answer, err
		}
	},
	"a limit that is not written to the log": func(m *model) {
		m.dumped = func(lines []string) []string {
			return slices.DeleteFunc(lines, func(line string) bool { return strings.HasSuffix(line, ` none"`) })
		}
	},
	"a pause that is not written to the log": func(m *model) {
		m.dumped = func(lines []string) []string {
			return slices.DeleteFunc(lines, func(line string) bool { return strings.HasSuffix(line, `target "all"`) })
		}
	},
	"a settle that does not ask for its lanes": func(m *model) {
		p := newMutant(m)
		p.settle = func(ctx context.Context, s *core.Settle) (core.SettleAnswer, error) {
			changed := *s
			changed.Lanes = nil
			return p.Store.Settle(ctx, &changed)
		}
	},
	"a refused settle that changes what is in the lanes it holds": func(m *model) {
		p := newMutant(m)
		p.settle = func(ctx context.Context, s *core.Settle) (core.SettleAnswer, error) {
			answer, err := p.Store.Settle(ctx, s)
			if err == nil && len(answer.Held) > 0 {
				part := *s
				part.Lanes = answer.Held
				_, err = p.Store.Settle(ctx, &part)
			}
			return answer, err
		}
	},
	"a retry that adds to the attempts": func(m *model) {
		p := newMutant(m)
		p.settle = func(ctx context.Context, s *core.Settle) (core.SettleAnswer, error) {
			more := *s
			more.Retry = slices.Clone(s.Retry)
			for i := range more.Retry {
				event, _ := m.mem.Event(more.Retry[i].ID)
				more.Retry[i].Attempts += event.Attempts
			}
			return p.Store.Settle(ctx, &more)
		}
	},
	"a death that does not ask for the row that was read": func(m *model) {
		p := newMutant(m)
		p.settle = func(ctx context.Context, s *core.Settle) (core.SettleAnswer, error) {
			changed := *s
			changed.Dead = slices.Clone(s.Dead)
			for i := range changed.Dead {
				changed.Dead[i].Found, _ = m.found(ctx, changed.Dead[i].ID)
			}
			return p.Store.Settle(ctx, &changed)
		}
	},
	"a parking that does not ask for the version of a held row": func(m *model) {
		p := newMutant(m)
		p.settle = func(ctx context.Context, s *core.Settle) (core.SettleAnswer, error) {
			changed := *s
			changed.Park = slices.Clone(s.Park)
			for i := range changed.Park {
				if found := &changed.Park[i].Found; found.Version > 0 {
					*found, _ = m.found(ctx, found.ID)
				}
			}
			return p.Store.Settle(ctx, &changed)
		}
	},
	"a read that looks beyond its window": func(m *model) {
		p := newMutant(m)
		p.read = func(ctx context.Context, r core.Read) (core.ReadAnswer, error) {
			r.Lanes = slices.Clone(r.Lanes)
			for i := range r.Lanes {
				r.Lanes[i].Window = 0
			}
			return p.Store.Read(ctx, r)
		}
	},
	"a death without its letter": func(m *model) {
		m.dumped = func(lines []string) []string {
			return slices.DeleteFunc(lines, func(line string) bool {
				return strings.HasPrefix(line, "letter ") && strings.Contains(line, "blocking false")
			})
		}
	},
	"a read that ignores its limit": func(m *model) {
		p := newMutant(m)
		p.read = func(ctx context.Context, r core.Read) (core.ReadAnswer, error) {
			r.Lanes = slices.Clone(r.Lanes)
			for i := range r.Lanes {
				r.Lanes[i].Limit = all
			}
			return p.Store.Read(ctx, r)
		}
	},
	"a read that does not go back for those who are gone": func(m *model) {
		p := newMutant(m)
		p.read = func(ctx context.Context, r core.Read) (core.ReadAnswer, error) {
			right, err := p.Store.Read(ctx, r)
			if err != nil {
				return right, err
			}
			r.Writers = nil
			soft, err := p.Store.Read(ctx, r)
			soft.Gone = right.Gone
			return soft, err
		}
	},
	"a read that goes back for those who are still open": func(m *model) {
		p := newMutant(m)
		p.read = func(ctx context.Context, r core.Read) (core.ReadAnswer, error) {
			right, err := p.Store.Read(ctx, r)
			if err != nil {
				return right, err
			}
			r.Lanes = slices.Clone(r.Lanes)
			for i := range r.Lanes {
				for _, w := range r.Writers {
					r.Lanes[i].C = min(r.Lanes[i].C, w.Low)
				}
			}
			eager, err := p.Store.Read(ctx, r)
			eager.Gone = right.Gone
			return eager, err
		}
	},
	"a read without its filter": func(m *model) {
		p := newMutant(m)
		p.read = func(ctx context.Context, r core.Read) (core.ReadAnswer, error) {
			r.Exclude = nil
			return p.Store.Read(ctx, r)
		}
	},
	"a read of lanes that are lost": func(m *model) {
		p := newMutant(m)
		p.read = func(ctx context.Context, r core.Read) (core.ReadAnswer, error) {
			right, err := p.Store.Read(ctx, r)
			if err != nil {
				return right, err
			}
			r.Owner = core.Owner{}
			wrong, err := p.Store.Read(ctx, r)
			wrong.Lost = right.Lost
			return wrong, err
		}
	},
	"an acquisition that leaves what a dead relay had": func(m *model) {
		p := newMutant(m)
		p.acquire = func(ctx context.Context, a core.Acquire) (core.AcquireAnswer, error) {
			lanes := m.mem.Lanes()
			a.Lanes = slices.DeleteFunc(slices.Clone(a.Lanes), func(lane int16) bool { return lanes[lane-firstLane].Crashed })
			return p.Store.Acquire(ctx, a)
		}
	},
	"an acquisition that takes lanes from their holders": func(m *model) {
		p := newMutant(m)
		p.acquire = func(ctx context.Context, a core.Acquire) (core.AcquireAnswer, error) {
			for _, lane := range a.Lanes {
				m.mem.FreeLane(lane)
			}
			return p.Store.Acquire(ctx, a)
		}
	},
	"an end of relays that live": func(m *model) {
		p := newMutant(m)
		p.end = func(ctx context.Context, e core.EndExpired) ([]outbox.ID, error) {
			for _, relay := range m.mem.Relays() {
				m.mem.ExpireRelay(relay.Relay)
			}
			return p.Store.EndExpired(ctx, e)
		}
	},
	"an end that counts no death": func(m *model) {
		p := newMutant(m)
		p.end = func(ctx context.Context, e core.EndExpired) ([]outbox.ID, error) {
			e.Away = true
			return p.Store.EndExpired(ctx, e)
		}
	},
	"a beat that was stuck and counts as the newest": func(m *model) {
		p := newMutant(m)
		p.beat = func(ctx context.Context, b core.Heartbeat) (core.HeartbeatAnswer, error) {
			for _, relay := range m.mem.Relays() {
				if relay.Relay == b.Relay && b.Number > 0 {
					b.Number = max(b.Number, relay.Number+1)
				}
			}
			return p.Store.Heartbeat(ctx, b)
		}
	},
	"a death that counts against what another owner noted": func(m *model) {
		p := newMutant(m)
		p.end = func(ctx context.Context, e core.EndExpired) ([]outbox.ID, error) {
			for _, relay := range m.mem.Relays() {
				for _, lane := range m.mem.Lanes() {
					if lane.Owner != relay.Relay || lane.MarkedEvent == (outbox.ID{}) {
						continue
					}
					tenure := core.Tenure{Lane: lane.Lane, Token: lane.Token}
					if _, err := p.Store.Note(ctx, core.Note{Owner: relay.Owner, Tenure: tenure, Event: lane.MarkedEvent}); err !=
						nil {
						return nil, err
					}
				}
			}
			return p.Store.EndExpired(ctx, e)
		}
	},
	"an unpark of types that nobody knows": func(m *model) {
		p := newMutant(m)
		p.unpark = func(ctx context.Context, u core.Unpark) (core.UnparkAnswer, error) {
			u.Types = eventTypes
			return p.Store.Unpark(ctx, u)
		}
	},
	"a fence without those who have only drawn": func(m *model) {
		p := newMutant(m)
		p.fence = func(ctx context.Context) (core.Fence, error) {
			fence, err := p.Store.Fence(ctx)
			fence.Writers = slices.DeleteFunc(fence.Writers, func(w core.Writer) bool { return w.XID == 0 })
			return fence, err
		}
	},
	"a heartbeat that forgets the floor": func(m *model) {
		p := newMutant(m)
		p.beat = func(ctx context.Context, b core.Heartbeat) (core.HeartbeatAnswer, error) {
			b.Lanes = slices.Clone(b.Lanes)
			for i := range b.Lanes {
				b.Lanes[i].Floor = 0
			}
			return p.Store.Heartbeat(ctx, b)
		}
	},
	"a release by whoever asks": func(m *model) {
		p := newMutant(m)
		p.release = func(ctx context.Context, r core.Release) error {
			r.Lanes = slices.Clone(r.Lanes)
			for i := range r.Lanes {
				r.Lanes[i].Token = m.mem.Lanes()[r.Lanes[i].Lane-firstLane].Token
			}
			return p.Store.Release(ctx, r)
		}
	},
	"held rows of lanes that are lost": func(m *model) {
		p := newMutant(m)
		p.rows = func(ctx context.Context, h core.HeldRows) (core.RowsAnswer, error) {
			right, err := p.Store.HeldRows(ctx, h)
			if err != nil {
				return right, err
			}
			h.Owner = core.Owner{}
			wrong, err := p.Store.HeldRows(ctx, h)
			wrong.Seen = right.Seen
			return wrong, err
		}
	},
	"held rows in the wrong order": func(m *model) {
		p := newMutant(m)
		p.rows = func(ctx context.Context, h core.HeldRows) (core.RowsAnswer, error) {
			rows, err := p.Store.HeldRows(ctx, h)
			slices.Reverse(rows.Events)
			return rows, err
		}
	},
	"due keys of types that were excluded": func(m *model) {
		p := newMutant(m)
		p.due = func(ctx context.Context, d core.DueKeys) (core.KeysAnswer, error) {
			d.Exclude = nil
			return p.Store.DueKeys(ctx, d)
		}
	},
	"due keys that leave one out between two pages": func(m *model) {
		p := newMutant(m)
		p.due = func(ctx context.Context, d core.DueKeys) (core.KeysAnswer, error) {
			keys, err := p.Store.DueKeys(ctx, d)
			for _, query := range d.Lanes {
				first := slices.IndexFunc(keys.Keys, func(k core.HeldKey) bool { return k.Lane == query.Lane })
				if first >= 0 && query.After != (core.HeldPlace{}) {
					keys.Keys = slices.Delete(keys.Keys, first, first+1)
				}
			}
			return keys, err
		}
	},
	"a sweep that stops before the floor": func(m *model) {
		p := newMutant(m)
		p.sweep = func(ctx context.Context, s core.Sweep) (core.SweepAnswer, error) {
			s.Floors = slices.Clone(s.Floors)
			for i := range s.Floors {
				s.Floors[i].Seq--
			}
			return p.Store.Sweep(ctx, s)
		}
	},
	"topics that are never forgotten": func(m *model) {
		p := newMutant(m)
		p.topics = func(ctx context.Context, relay outbox.ID, statuses []core.RouteStatus) error {
			statuses = slices.Clone(statuses)
			for _, r := range m.mem.Topics() {
				if r.Relay == relay && !slices.ContainsFunc(statuses, func(s core.RouteStatus) bool { return s.Topic == r.Topic }) {
					statuses = append(statuses, r.RouteStatus)
				}
			}
			return p.Store.SaveRoutes(ctx, relay, statuses)
		}
	},
	"a redrive that keeps the attempts": func(m *model) {
		m.act = func(verb check.Verb, order memstore.Order, events ...outbox.ID) ([]memstore.Result, error) {
			was := map[outbox.ID]int32{}
			for _, id := range events {
				event, _ := m.mem.Event(id)
				was[id] = event.Attempts
			}
			results, err := m.mem.Operate(verb, order, events...)
			var kept core.Settle
			for _, result := range results {
				if verb == check.Redrive && result.Outcome == memstore.Done {
					event, _ := m.mem.Event(result.Event)
					kept.Retry = append(kept.Retry, core.Retry{Found: event.Found(), Attempts: was[result.Event]})
				}
			}
			kept.Owner = m.anybody()
			if _, err := m.mem.Settle(context.Background(), &kept); err != nil {
				return nil, err
			}
			return results, err
		}
	},
	"a skip that resolves like a discard": func(m *model) {
		m.act = func(verb check.Verb, order memstore.Order, events ...outbox.ID) ([]memstore.Result, error) {
			if verb == check.Skip {
				verb = check.Discard
			}
			return m.mem.Operate(verb, order, events...)
		}
	},
	"an action that does not name its letter": func(m *model) {
		m.dumped = func(lines []string) []string {
			for i, line := range lines {
				if strings.HasPrefix(line, "action ") {
					lines[i] = strings.Replace(line, "letter 1 ", "letter 0 ", 1)
				}
			}
			return lines
		}
	},
}

// anybody is a relay that was not ended, if there is one.
func (m *model) anybody() core.Owner {
	for _, relay := range m.mem.Relays() {
		if !relay.Ended {
			return relay.Owner
		}
	}
	return core.Owner{}
}

// TestMutantsAreFound: the proof can fail, and does for each of these, within a tenth of its length.
func TestMutantsAreFound(t *testing.T) {
	t.Parallel()
	all := maps.Clone(faults)
	maps.Copy(all, requestFaults)
	for name, fault := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t, DefaultURL())
			found, err := Proof{Sequences: 100, Actions: 60, Seed: 1, mutate: fault}.Run(t.Context(), db)
			if err != nil {
				t.Fatal(err)
			}
			if found.Mismatch == "" {
				t.Fatalf("not found in %d actions", found.Actions)
			}
			t.Logf("found in sequence %d, after %d actions", found.Sequences+1, found.Actions)
			control, err := Proof{Sequences: 1, Actions: 60, Seed: 1 + uint64(found.Sequences)}.Run(t.Context(), db)
			if err != nil || control.Mismatch != "" {
				t.Errorf("the same sequence fails without the fault: %v\n%s", err, control.Mismatch)
			}
		})
	}
}
