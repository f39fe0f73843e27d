-- $1 the consumer, $2 the event. Answers 1 if it was not handled before. Without a conflict target, so that a consumer
-- needs no right to read what others have handled.
WITH marked AS (
    INSERT INTO {schema}.inbox_handled (consumer, event_id) VALUES ($1::text, $2::text::uuid) ON CONFLICT DO NOTHING
        RETURNING 1
)
SELECT count(*)::text FROM marked
