package modeltest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// queryStep is a step that reads from the store.
func queryStep(what any, query func(ctx context.Context, side side, store core.Store) ([]string, error)) *step {
	return &step{what: what, do: func(ctx context.Context, side side) ([]string, error) {
		return query(ctx, side, side.store())
	}}
}

// writeStep is a step that writes to the store and gets no answer.
func writeStep(what any, write func(ctx context.Context, store core.Store) error) *step {
	return queryStep(what, func(ctx context.Context, _ side, store core.Store) ([]string, error) {
		return nil, write(ctx, store)
	})
}

// all is a limit that cuts nothing.
const all = 1 << 20

func (s *script) fence() *step {
	begun := s.begun
	step := queryStep(nil, func(ctx context.Context, side side, store core.Store) ([]string, error) {
		fence, err := store.Fence(ctx)
		lines := []string{
			fmt.Sprintf("last %d standby %v incarnation %v", fence.Last, fence.Standby, fence.Incarnation != ""),
		}
		for _, writer := range fence.Writers {
			lines = append(lines, whoIs(side, begun, writer))
		}
		slices.Sort(lines)
		return lines, err
	})
	step.learn = func(answer []string) {
		s.fenced = slices.DeleteFunc(slices.Clone(s.open), func(tx int) bool { return s.model.writer(tx).XID == 0 })
		if len(answer) > 1 {
			s.saw["fence_with_writers"]++
		}
	}
	return step
}

// whoIs names a writer by the number of its transaction. A transaction that has only drawn numbers may have
// an xid: PostgreSQL gives it one when the draw was logged, once in 32.
func whoIs(side side, begun int, writer core.Writer) string {
	for tx := range begun {
		switch self := side.writer(tx); {
		case self.VXID != writer.VXID:
		case self.XID == 0:
			return fmt.Sprintf("writer tx %d", tx)
		case self.XID == writer.XID:
			return fmt.Sprintf("writer tx %d, by its xid", tx)
		default:
			return fmt.Sprintf("writer tx %d with xid %d, which is not its own %d", tx, writer.XID, self.XID)
		}
	}
	return fmt.Sprintf("writer %v, who is nobody", writer)
}

// openWriter is a writer of the last fence, by the number of its transaction.
type openWriter struct {
	tx  int
	low int64
}

func (s *script) read() *step {
	read := core.Read{Owner: s.asker(), MaxBytes: all}
	ahead := len(s.fenced) > 0 && s.chance(50) // the cursor is, as it is while somebody is open
	for _, lane := range some(s, s.lanes, 1) {
		bounds := core.LaneRead{Lane: lane, Limit: 1 + s.rng.IntN(5)}
		if s.chance(30) {
			bounds.W = s.rng.Int64N(s.last + 1)
		}
		switch bounds.C = bounds.W; {
		case ahead:
			bounds.C = s.last
		case s.chance(30):
			bounds.C += s.rng.Int64N(s.last - bounds.W + 2)
		}
		if s.chance(30) {
			bounds.Window = 1 + s.rng.Int64N(s.last+1)
		}
		read.Lanes = append(read.Lanes, bounds)
	}
	switch s.rng.IntN(6) {
	case 0, 1:
		read.Exclude = some(s, eventTypes, 1)
	case 2:
		read.MaxBytes = s.rng.IntN(2000)
	}
	var writers []openWriter
	if len(s.fenced) > 0 {
		for _, tx := range some(s, s.fenced, 0) {
			writers = append(writers, openWriter{tx: tx, low: s.rng.Int64N(s.last + 1)})
		}
	}
	return s.reading(read, writers)
}

func (s *script) reading(read core.Read, writers []openWriter) *step {
	step := queryStep(fmt.Sprintf("%+v with writers %+v", read, writers),
		func(ctx context.Context, side side, store core.Store) ([]string, error) {
			read := read
			txs := map[uint64]int{}
			for _, w := range writers {
				xid := side.writer(w.tx).XID
				txs[xid] = w.tx
				read.Writers = append(read.Writers, core.OpenWriter{XID: xid, Low: w.low})
			}
			answer, err := store.Read(ctx, read)
			var gone []int
			for _, xid := range answer.Gone {
				gone = append(gone, txs[xid])
			}
			slices.Sort(gone)
			slices.Sort(answer.Lost)
			lines := []string{fmt.Sprintf("gone %v", gone), fmt.Sprintf("lost %v stopped %v", answer.Lost, answer.Stopped)}
			for i := range answer.Events {
				lines = append(lines, line(&answer.Events[i]))
			}
			return lines, err
		})
	step.learn = func(answer []string) {
		s.saw["rows_read"] += len(answer) - 2
		if answer[0] != "gone []" {
			s.saw["read_after_writers_left"]++
		}
		if !strings.HasPrefix(answer[1], "lost []") {
			s.saw["read_of_lost_lanes"]++
		}
	}
	return step
}

// line prints an event without its times.
func line(e *core.Event) string {
	due := e.State == core.Retrying && e.DueIn < time.Hour
	return fmt.Sprintf("%d %s lane %d state %d attempts %d %s of %v tenant %q key %q due %v payload %s headers %s",
		e.Seq, e.ID, e.Lane, e.State, e.Attempts, e.Type, e.Aggregate, e.Tenant, e.DedupeKey, due, e.Payload, e.Headers)
}

func (s *script) barrier() *step {
	return writeStep(nil, func(ctx context.Context, store core.Store) error { return store.Barrier(ctx, "") })
}

func (s *script) sweep() *step {
	var floors []core.Floor
	for _, lane := range some(s, s.lanes, 1) {
		floors = append(floors, core.Floor{Lane: lane, Seq: s.rng.Int64N(s.last + 2), Above: s.rng.Int64N(s.last/2 + 1)})
	}
	owner := s.asker()
	query := func(limit int) func(context.Context, side, core.Store) ([]string, error) {
		return func(ctx context.Context, _ side, store core.Store) ([]string, error) {
			found, err := store.Sweep(ctx, core.Sweep{Owner: owner, Floors: floors, Limit: limit})
			return lines(found.Found), err
		}
	}
	return s.cut(fmt.Sprintf("%+v %+v", owner, floors), query)
}

// cut makes a step of a question with a random limit, when it is not promised what a limit leaves out.
func (s *script) cut(what any, query func(limit int) func(context.Context, side, core.Store) ([]string, error)) *step {
	limit := 1 + s.rng.IntN(4)
	if s.chance(50) {
		limit = all
	}
	step := queryStep(fmt.Sprintf("%+v limit %d", what, limit), query(limit))
	step.among, _ = query(all)(context.Background(), s.model, s.model.store()) // the model does not fail to read
	return step
}

// lines prints items in an order of its own, where none is promised.
func lines[T any](items []T) []string {
	var lines []string
	for _, item := range items {
		lines = append(lines, fmt.Sprintf("%+v", item))
	}
	slices.Sort(lines)
	return lines
}

func (s *script) saveTopics() *step {
	relay := s.owner(20).Relay
	var statuses []core.RouteStatus
	for _, topic := range some(s, []string{"orders", "freight", "bills"}, 0) {
		status := core.RouteStatus{Topic: topic, Paused: s.chance(50)}
		if status.Paused {
			status.Error = pick(s, []string{"down", "no such topic"})
			status.ByOperator = s.chance(50)
		}
		statuses = append(statuses, status)
	}
	return writeStep(fmt.Sprintf("%s %+v", relay, statuses), func(ctx context.Context, store core.Store) error {
		return store.SaveRoutes(ctx, relay, statuses)
	})
}
