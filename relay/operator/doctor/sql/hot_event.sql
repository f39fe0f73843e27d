-- How one event is looked up.
SELECT r.seq FROM {schema}.outbox_events r WHERE r.id = $1::uuid
