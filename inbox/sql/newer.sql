-- $1 the consumer, $2 to $4 the aggregate, $5 the event's number. Answers 1 if it is newer than what was applied
-- before.
WITH moved AS (
    INSERT INTO {schema}.inbox_newest AS n (consumer, namespace, aggregate_type, aggregate_id, seq)
    VALUES ($1::text, $2::text, $3::text, $4::text, $5::text::bigint)
    ON CONFLICT ON CONSTRAINT inbox_newest_pkey DO UPDATE SET seq = excluded.seq, applied_on = excluded.applied_on
       WHERE n.seq < excluded.seq
    RETURNING 1
)
SELECT count(*)::text FROM moved
