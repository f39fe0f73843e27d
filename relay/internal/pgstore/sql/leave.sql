-- $1 relay, $2 its token. It has given its lanes back; were there one still, it could not leave.
WITH left_now AS (
    UPDATE {schema}.outbox_relays r SET ended_at = clock_timestamp()
     WHERE r.id = $1::uuid AND r.token = $2::uuid AND r.ended_at IS NULL AND r.lanes = '{}' RETURNING r.id
), known AS (
    DELETE FROM {schema}.outbox_known k USING left_now WHERE k.relay = left_now.id
)
DELETE FROM {schema}.outbox_topics t USING left_now WHERE t.relay = left_now.id
