SET session_replication_role = replica;
TRUNCATE {schema}.outbox_events RESTART IDENTITY;
TRUNCATE bench.lease_events, bench.minimal_events RESTART IDENTITY;
DELETE FROM {schema}.outbox_relays;
UPDATE {schema}.outbox_lanes SET owner = NULL, token = NULL, lease_until = NULL, acquired_at = NULL, floor = 0,
    needs = '{}',
    crash_count = 0, marked_event = NULL, marked_count = 0;
RESET session_replication_role
