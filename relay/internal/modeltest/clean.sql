-- An outbox as it was on its first day. Triggers refuse this; they are off for a session in the role replica.
DELETE FROM {schema}.outbox_requests;
DELETE FROM {schema}.outbox_actions;
DELETE FROM {schema}.outbox_pauses;
DELETE FROM {schema}.outbox_limits;
DELETE FROM {schema}.outbox_dlq;
DELETE FROM {schema}.outbox_held;
DELETE FROM {schema}.outbox_events;
DELETE FROM {schema}.outbox_topics;
DELETE FROM {schema}.outbox_relays;
DELETE FROM {schema}.outbox_beats;
DELETE FROM {schema}.outbox_known;
DELETE FROM {schema}.outbox_markers;
UPDATE {schema}.outbox_lanes
   SET owner = NULL, token = NULL, acquired_at = NULL, floor = 0, swept = 0, needs = '{}', crashed = false,
       crash_count = 0
 WHERE owner IS NOT NULL OR floor > 0 OR swept > 0 OR needs <> '{}' OR crashed OR crash_count > 0;
SELECT setval('{schema}.outbox_events_seq_seq', 1, false), setval('{schema}.outbox_dlq_id_seq', 1, false),
       setval('{schema}.outbox_actions_id_seq', 1, false), setval('{schema}.outbox_requests_id_seq', 1, false);
