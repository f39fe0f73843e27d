-- Relays that are alive for a day, with one lane each, that know one type and have paused its topic.
WITH texts AS (
    SELECT t, n::smallint AS n FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY v(t, n)
), relays AS (
    INSERT INTO {schema}.outbox_relays (id, token, lanes, name, version)
    SELECT (t->>'relay_id')::uuid, (t->>'relay_id')::uuid, ARRAY[n], t->>'relay_name', t->>'relay_version' FROM texts
    RETURNING id
), beats AS (
    INSERT INTO {schema}.outbox_beats (relay, number, until, lanes, floors, swept, recovered)
    SELECT id, 1, now() + interval '1 day', t.lanes, '{0}', '{0}', '{true}'
      FROM relays JOIN (SELECT (t->>'relay_id')::uuid AS id, ARRAY[n] AS lanes FROM texts) t USING (id)
), known AS (
    INSERT INTO {schema}.outbox_known (relay, event_type, topic)
    SELECT (t->>'relay_id')::uuid, t->>'known_type', t->>'known_topic' FROM texts
), topics AS (
    INSERT INTO {schema}.outbox_topics (relay, paused, topic, error)
    SELECT (t->>'relay_id')::uuid, true, t->>'topic', t->>'topic_error' FROM texts
)
UPDATE {schema}.outbox_lanes l SET owner = (t->>'relay_id')::uuid, token = (t->>'relay_id')::uuid, acquired_at = now()
  FROM texts WHERE l.lane = n
