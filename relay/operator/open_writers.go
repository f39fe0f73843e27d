package operator

import (
	"context"
	"time"
)

// An OpenWriter is a transaction that has drawn numbers for events and has not ended. It delays its own events and no
// others: those show when it commits. One that is open for long keeps the database from cleaning up as well.
type OpenWriter struct {
	// PID is the process; 0 of a prepared transaction, which has a name in Prepared.
	PID      int    `json:"pid,omitempty"`
	Prepared string `json:"prepared,omitempty"`
	// Role and Application are whose it is, State what its session does, such as "idle in transaction"; empty: this role
	// may not see it.
	Role        string `json:"role,omitempty"`
	Application string `json:"application,omitempty"`
	State       string `json:"state,omitempty"`
	// Since is when it began; nil: this role may not see it. Members of pg_read_all_stats may.
	Since *time.Time `json:"since,omitempty"`
}

// OpenWriters lists the transactions that write events and are open, the oldest first, at most 100. The grants of the
// viewer role are enough; how old they are only members of pg_read_all_stats see.
func (o *Operator) OpenWriters(ctx context.Context) (writers []OpenWriter, err error) {
	err = o.look(ctx, "open writers", func(l *looking) error {
		found, err := l.openWriters(ctx)
		for _, w := range found {
			writers = append(writers, OpenWriter{
				PID: w.pid, Prepared: w.prepared, Role: w.role, Application: w.application, State: w.state, Since: w.since,
			})
		}
		return err
	})
	return writers, err
}
