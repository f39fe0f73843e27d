package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Numbers is what became of the numbers that the sequence of events gave out. Each is drawn by one transaction, right
// before it writes the event, and given to nobody else: the sequence caches none.
type Numbers struct {
	// Drawn is the last number, and so how many were drawn.
	Drawn int64 `json:"drawn"`
	// Present is how many events there are, Pruned how many retention has deleted.
	Present int64 `json:"present"`
	Pruned  int64 `json:"pruned"`
	// Unused is how many numbers are left: their transactions were rolled back, or are open, or somebody deleted the
	// events. Within is how many of them lie between numbers that retention has deleted: which these are is not known any
	// more. The others are in Gaps.
	Unused int64 `json:"unused"`
	Within int64 `json:"within"`
	// Gaps is how many ranges of numbers there are that no event has, and in which retention deleted nothing.
	Gaps int64 `json:"gaps"`
	// Behind is by how much the sequence is behind the highest number in use. It must be 0: else it gives out numbers that
	// are taken, or lower than those of older events.
	Behind int64 `json:"behind"`
	// Open is how many transactions were open that had drawn a number: a gap may be theirs.
	Open int64 `json:"open"`
	// Meanwhile is how many events retention deleted during the count, which may be counted twice.
	Meanwhile int64 `json:"meanwhile"`
}

// The steps in which numbers are counted.
const (
	numbersPerStep = 50_000
	// mostNumbers is at how many numbers a step looks where few are in use.
	mostNumbers = 1 << 20
	fewEvents   = 10_000
)

// Sequence accounts for every number that was drawn. Of Config it needs the schema, Found and Progress.
func Sequence(ctx context.Context, db DB, config Config) (Numbers, error) {
	config = config.withDefaults()
	s := &sequence{table: table{db: db, schema: config.Schema}, config: config}
	if err := s.count(ctx); err != nil {
		return s.numbers, fmt.Errorf("audit: the sequence: %w", s.table.said(err))
	}
	return s.numbers, nil
}

type sequence struct {
	table   table
	config  Config
	numbers Numbers
	// gap is one that may go on in the next step.
	gap Finding
	// left is how many numbers the gaps have.
	left int64
}

func (s *sequence) count(ctx context.Context) error {
	before, err := s.begin(ctx)
	if err != nil {
		return err
	}
	meter := newMeter(s.config.Progress, "counting")
	width, end := int64(numbersPerStep), s.numbers.Drawn+s.numbers.Behind
	for first := int64(1); first <= end; {
		last := min(first+width-1, end)
		present, err := s.step(ctx, first, last)
		if err != nil {
			return err
		}
		if last, err = s.jump(ctx, last, end); err != nil {
			return err
		}
		meter.at(last, end)
		first = last + 1
		if width = min(2*width, mostNumbers); present >= fewEvents {
			width = numbersPerStep
		}
	}
	if err := s.endGap(); err != nil {
		return err
	}
	err = s.table.look(ctx, func(tx pgx.Tx, _ time.Time) error {
		return tx.QueryRow(ctx, s.table.sql("pruned_sum")).Scan(&s.numbers.Pruned)
	})
	if err != nil {
		return err
	}
	s.numbers.Meanwhile = s.numbers.Pruned - before
	s.numbers.Unused = max(end-s.numbers.Present-s.numbers.Pruned, 0)
	s.numbers.Within = max(s.numbers.Unused-s.left, 0)
	return nil
}

// begin reads the last number, and then who is open: whoever drew a number up to it and is not among these has ended,
// and what it committed all later snapshots have.
func (s *sequence) begin(ctx context.Context) (pruned int64, err error) {
	err = s.table.look(ctx, func(tx pgx.Tx, _ time.Time) error {
		if err := tx.QueryRow(ctx, s.table.sql("pruned_sum")).Scan(&pruned); err != nil {
			return err //nolint:wrapcheck // Sequence says what it was
		}
		// The snapshot is older than the look at the sequence: whoever draws and commits meanwhile makes no difference.
		var highest int64
		if err := tx.QueryRow(ctx, s.table.sql("highest")).Scan(&highest); err != nil {
			return err //nolint:wrapcheck // Sequence says what it was
		}
		err := tx.QueryRow(ctx, s.table.sql("drawn")).Scan(&s.numbers.Drawn)
		s.numbers.Behind = max(highest-s.numbers.Drawn, 0)
		return err //nolint:wrapcheck // Sequence says what it was
	})
	if err != nil {
		return 0, err
	}
	return pruned, s.table.look(ctx, func(tx pgx.Tx, _ time.Time) error {
		name := pgx.Identifier{s.table.schema, "outbox_events_seq_seq"}.Sanitize()
		return tx.QueryRow(ctx, s.table.sql("open"), name).Scan(&s.numbers.Open)
	})
}

// step looks at the numbers between two.
func (s *sequence) step(ctx context.Context, first, last int64) (present int64, err error) {
	var firsts, lasts []int64
	err = s.table.look(ctx, func(tx pgx.Tx, _ time.Time) error {
		return tx.QueryRow(ctx, s.table.sql("gaps"), first, last).Scan(&present, &firsts, &lasts)
	})
	if err != nil {
		return 0, err
	}
	s.numbers.Present += present
	for i, begin := range firsts {
		s.left += lasts[i] - begin + 1
		if s.gap.Seq != 0 && s.gap.Last+1 == begin {
			s.gap.Last = lasts[i]
			continue
		}
		if err := s.endGap(); err != nil {
			return present, err
		}
		s.gap = Finding{Kind: Gap, Seq: begin, Last: lasts[i]}
	}
	return present, nil
}

// jump ends a gap that goes on behind a step where the next number in use is: nobody waits for all those between.
func (s *sequence) jump(ctx context.Context, last, end int64) (int64, error) {
	if s.gap.Seq == 0 || s.gap.Last != last || last == end {
		return last, nil
	}
	var next *int64
	err := s.table.look(ctx, func(tx pgx.Tx, _ time.Time) error {
		return tx.QueryRow(ctx, s.table.sql("next"), last+1).Scan(&next)
	})
	if err != nil {
		return last, err
	}
	if next != nil {
		end = min(end, *next-1)
	}
	s.left += end - last
	s.gap.Last = end
	return end, nil
}

// endGap reports the gap before, which does not go on.
func (s *sequence) endGap() error {
	if s.gap.Seq == 0 {
		return nil
	}
	s.numbers.Gaps++
	s.gap.Why = "rolled back, or the events were deleted"
	if s.numbers.Open > 0 {
		s.gap.Why = "rolled back or still open, or the events were deleted"
	}
	finding := s.gap
	s.gap = Finding{}
	return s.config.Found(finding)
}
