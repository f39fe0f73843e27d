-- $1 the cut-off. How many published events are older.
SELECT count(*) FROM {schema}.outbox_events e WHERE e.published_at < $1::timestamptz
