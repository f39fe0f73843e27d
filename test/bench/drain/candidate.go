package drain

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/bench/candidate"
)

// Candidate drains the layout that comes next with the statements that a relay will use: it reads all lanes behind
// where it is in each, and settles by lane and number under the lock of its own row.
type Candidate struct {
	Env   *Env
	Batch int
}

const candidateLanes = 64

// InstallCandidate makes the tables.
func (w *Env) InstallCandidate(ctx context.Context) error {
	if err := w.migrate(ctx, schema.Options{Schema: candidate.Schema}); err != nil {
		return err
	}
	return w.DB.Exec(ctx, candidate.Statement("layout"))
}

// laned is an event with its lane.
type laned struct {
	stored
	lane int16
}

func (c Candidate) drain(ctx context.Context, to sender, settled func() error) error {
	conn, err := c.Env.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	l := candidateRelay{conn: conn, id: outbox.NewID(), token: outbox.NewID(), behind: make([]int64, candidateLanes)}
	for lane := range candidateLanes {
		l.lanes = append(l.lanes, int16(lane+1))
	}
	if _, err := conn.Exec(ctx, candidate.Statement("register"),
		[16]byte(l.id), [16]byte(l.token), l.lanes); err != nil {
		return fmt.Errorf("drain: register: %w", err)
	}
	for {
		batch, err := l.read(ctx, max(c.Batch/candidateLanes, 1))
		if err != nil {
			return err
		}
		if len(batch) == 0 {
			return settled()
		}
		for i := range batch {
			if err := to.send(&batch[i].stored); err != nil {
				return err
			}
		}
		if err := to.await(ctx); err != nil {
			return err
		}
		if err := l.settle(ctx, batch); err != nil {
			return err
		}
	}
}

// candidateRelay is a relay of this layout, as far as its statements see one.
type candidateRelay struct {
	conn      *pgx.Conn
	id, token outbox.ID
	lanes     []int16
	behind    []int64 // the last number read of each
}

// read takes the next events of every lane.
func (l *candidateRelay) read(ctx context.Context, each int) ([]laned, error) {
	const top = 1 << 62
	rows, err := l.conn.Query(ctx, candidate.Statement("read"), [16]byte(l.id), [16]byte(l.token), l.lanes, l.behind,
		int64(top), each)
	if err != nil {
		return nil, fmt.Errorf("drain: read: %w", err)
	}
	batch := make([]laned, 0, each*candidateLanes)
	var one laned
	_, err = pgx.ForEachRow(rows, []any{
		&one.lane, &one.seq, (*[16]byte)(&one.id), &one.eventType, &one.aggregateType, &one.aggregateID, &one.payload,
	}, func() error {
		batch = append(batch, one)
		l.behind[one.lane-1] = one.seq
		one.payload = nil
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("drain: read: %w", err)
	}
	return batch, nil
}

// settle takes them down as published.
func (l *candidateRelay) settle(ctx context.Context, batch []laned) error {
	slices.SortFunc(batch, func(a, b laned) int {
		return cmp.Compare(a.seq, b.seq)
	})
	lanes, numbers := make([]int16, len(batch)), make([]int64, len(batch))
	for i := range batch {
		lanes[i], numbers[i] = batch[i].lane, batch[i].seq
	}
	of := slices.Compact(slices.Sorted(slices.Values(lanes)))
	var n int
	err := l.conn.QueryRow(ctx, candidate.Statement("settle"), [16]byte(l.id), [16]byte(l.token), of, lanes, numbers,
		numbers[0], numbers[len(numbers)-1]).Scan(&n)
	if err == nil && n != len(batch) {
		err = fmt.Errorf("%d of %d rows were its own and ready", n, len(batch))
	}
	if err != nil {
		return fmt.Errorf("drain: settle: %w", err)
	}
	return nil
}
