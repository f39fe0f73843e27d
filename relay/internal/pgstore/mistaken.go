package pgstore

import (
	"context"
	"strings"

	"github.com/posthaste-dev/posthaste/internal/planted"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// mistaken is the text of a statement, with a mistake in it where one was planted.
func mistaken(file, text string) string {
	if !planted.Built {
		return text
	}
	const free, holder, lock = "(l.lease_until IS NULL OR l.lease_until < clock_timestamp())", "ON l.lane = t.lane AND l.token = t.token", "ORDER BY l.lane FOR KEY SHARE OF l"
	return planted.Text(file, text,
		planted.Change{Bug: planted.AcquireHeldLanes, File: "acquire", From: free, To: "true"},
		planted.Change{Bug: planted.NoteWithoutToken, File: "acquire", From: "WHEN l.noted_by = l.token", To: "WHEN true"},
		planted.Change{Bug: planted.ReleaseWithoutToken, File: "release", From: holder, To: "ON l.lane = t.lane"},
		planted.Change{Bug: planted.FloorFalls, File: "renew", From: "greatest(l.floor, own.floor)", To: "own.floor"},
		planted.Change{Bug: planted.IsCalledIgnored, File: "fence_sequence", From: "CASE WHEN is_called THEN last_value ELSE last_value - 1 END", To: "last_value"},
		planted.Change{Bug: planted.ReadByCreatedAt, File: "read", From: "ORDER BY o.seq", To: "ORDER BY o.created_at, o.seq"},
		planted.Change{Bug: planted.BarrierNotFlushed, File: "barrier", From: "ELSE 'on' END", To: "ELSE current_setting('synchronous_commit') END"},
		planted.Change{Bug: planted.SettleWithoutToken, File: "settle", From: holder, To: "ON l.lane = t.lane"},
		planted.Change{Bug: planted.SettleWithoutToken, File: "settle_published", From: holder, To: "ON l.lane = t.lane"},
		planted.Change{Bug: planted.SettleWithoutLock, File: "settle", From: lock, To: ""},
		planted.Change{Bug: planted.SettleWithoutLock, File: "settle_published", From: lock, To: ""},
		planted.Change{Bug: planted.DeadLetterApart, File: "settle", From: "FROM dead ORDER BY seq", To: "FROM dead WHERE false"},
	)
}

// lettersApart writes dead letters in a transaction of its own, which is a mistake. It is no method: those leave
// their names in the program.
func lettersApart(ctx context.Context, s *Store, dead []core.Death) error {
	schema, _, _ := strings.Cut(s.sequence, ".outbox_events_seq_seq")
	for _, death := range dead {
		_, err := s.pool.Exec(ctx, `INSERT INTO `+schema+`.outbox_dlq (event_seq, event_id, created_at, attempts, blocking, namespace, event_type,
			aggregate_type, aggregate_id, topic, error_reason, payload_json, headers)
			SELECT seq, id, created_at, attempt_count, $2::boolean, namespace, event_type,
			aggregate_type, aggregate_id, nullif($3::text, ''), $4::text, payload_json, headers
			FROM `+schema+`.outbox_events WHERE id = $1::uuid`, uuid(death.ID), death.Blocking, death.Topic, death.Reason)
		if err != nil {
			return failed("settle", err)
		}
	}
	return nil
}
