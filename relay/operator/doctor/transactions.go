package doctor

import (
	"context"
	"fmt"
	"time"
)

// checkTransactions finds who holds events or old versions of rows back.
func (x *examination) checkTransactions(ctx context.Context) error {
	var pid int
	var user, application, state string
	var seconds float64
	var writes bool
	err := x.rows(ctx, "activity", []any{x.namespace(), x.OldTransaction.Seconds()},
		[]any{&pid, &user, &application, &state, &seconds, &writes}, func() {
			fix := fmt.Sprintf("SELECT pg_terminate_backend(%d, 10000)", pid)
			who := fmt.Sprintf("the session %d of %s (%s, %s)", pid, user, application, state)
			if writes {
				x.sqlf("old_writer", fix, "%s has written to the outbox and is open for %s", who, age(seconds))
			} else {
				x.sqlf("old_snapshot", fix, "%s holds a snapshot for %s", who, age(seconds))
			}
		})
	if err != nil {
		return err
	}
	var seesAll bool
	if err := x.row(ctx, "SELECT pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE')", nil,
		[]any{&seesAll}); err != nil {
		return err
	}
	if !seesAll && !x.superuser {
		x.leaveOutf("transactions of others: the role %s may not see them (GRANT pg_read_all_stats TO %s)", x.role,
			ident(x.role))
	}
	var gid, owner string
	err = x.rows(ctx, "prepared", []any{x.OldTransaction.Seconds()}, []any{&gid, &owner, &seconds}, func() {
		x.sqlf("old_prepared", "ROLLBACK PREPARED "+literal(gid),
			"the transaction %s of %s is prepared for %s, and neither committed nor rolled back (if it is meant to be, COMMIT "+
				"PREPARED ends it as well)", gid, owner, age(seconds))
	})
	if err != nil {
		return err
	}
	var slot, kind string
	var snapshot bool
	var bytes int64
	return x.rows(ctx, "slots", []any{x.SlotBytes}, []any{&slot, &kind, &snapshot, &bytes}, func() {
		x.sqlf("slot_unused", "SELECT pg_drop_replication_slot("+literal(slot)+")",
			"nobody uses the %s replication slot %s, and it keeps %d MB of log", kind, slot, bytes>>20)
	})
}

// age is a number of seconds as people say it.
func age(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(time.Millisecond)
}
