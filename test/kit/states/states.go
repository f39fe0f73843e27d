// Package states has the statements by which tests look where events stand, and move them, behind the relays' backs.
// States have the numbers of internal/state: what is not held stands on the event, how one is held in outbox_held.
// {schema} is to be replaced.
package states

// Of is where the event e of a query on outbox_events stands.
const Of = `coalesce((SELECT h.kind FROM {schema}.outbox_held h WHERE h.lane = e.lane AND h.seq = e.seq), e.state)`

// Move brings the event $1 to the state $2 from whatever it is in, as a settle or an operator would. A retry is due
// now.
const Move = `WITH event AS (
		UPDATE {schema}.outbox_events
		   SET state = CASE WHEN $2::smallint BETWEEN 1 AND 4 THEN 1 ELSE $2::smallint END,
		       published_at = CASE WHEN $2::smallint = 6 THEN clock_timestamp() END
		 WHERE id = $1 RETURNING lane, seq, namespace, event_type, aggregate_type, aggregate_id
	), gone AS (
		DELETE FROM {schema}.outbox_held h USING event e
		 WHERE h.lane = e.lane AND h.seq = e.seq AND $2::smallint NOT BETWEEN 1 AND 4
	) INSERT INTO {schema}.outbox_held (lane, seq, kind, due, namespace, event_type, aggregate_type, aggregate_id)
	SELECT lane, seq, $2::smallint, CASE WHEN $2::smallint = 1 THEN clock_timestamp() END, namespace, event_type,
	       aggregate_type, aggregate_id
	  FROM event WHERE $2::smallint BETWEEN 1 AND 4
	ON CONFLICT (lane, seq) DO UPDATE
	   SET kind = excluded.kind, due = excluded.due, since = clock_timestamp(), version = DEFAULT`
