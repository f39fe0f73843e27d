SET session_replication_role = replica;
TRUNCATE {schema}.outbox_events, {schema}.outbox_held RESTART IDENTITY;
TRUNCATE bench.lease_events, bench.minimal_events RESTART IDENTITY;
TRUNCATE {schema}.outbox_relays, {schema}.outbox_beats, {schema}.outbox_known, {schema}.outbox_topics,
    {schema}.outbox_markers;
UPDATE {schema}.outbox_lanes SET owner = NULL, token = NULL, acquired_at = NULL, floor = 0, needs = '{}',
    crashed = false, crash_count = 0;
RESET session_replication_role
