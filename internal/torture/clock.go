package torture

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// clock is how far the database's clock is ahead of this machine's, and how wrong that may be, in microseconds.
type clock struct{ ahead, wrong int64 }

// whole is how close to whole seconds a difference must be to be taken for them. Clocks of one machine differ by
// nothing, or by what they were set off by.
const whole = 3 * time.Millisecond

// readClock compares the clocks a few times and believes the quickest answer.
func readClock(ctx context.Context, pool *pgxpool.Pool) (clock, error) {
	var best clock
	for n := range 20 {
		sent := time.Now()
		var at int64
		if err := pool.QueryRow(ctx, fmt.Sprintf("SELECT "+micros, "clock_timestamp()")).Scan(&at); err != nil {
			return clock{}, fmt.Errorf("torture: the database's clock: %w", err)
		}
		wrong := time.Since(sent).Microseconds()/2 + 1
		if n == 0 || wrong < best.wrong {
			best = clock{ahead: at - sent.UnixMicro() - wrong, wrong: wrong}
		}
	}
	best.ahead = wholeSeconds(best.ahead)
	return best, nil
}

// wholeSeconds takes what is close to whole seconds for them.
func wholeSeconds(ahead int64) int64 {
	off := time.Duration(ahead) * time.Microsecond
	if rounded := off.Round(time.Second); (off - rounded).Abs() <= whole {
		return rounded.Microseconds()
	}
	return ahead
}

// micros is how all times are read: microseconds since 1970.
const micros = "(extract(epoch FROM %s) * 1000000)::bigint"

// ours reads a time of the database by this machine's clock.
func (c clock) ours(column string) string { return fmt.Sprintf("("+micros+" - %d)", column, c.ahead) }
