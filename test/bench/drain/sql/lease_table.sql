CREATE TABLE bench.lease_events (
    LIKE {schema}.outbox_events INCLUDING DEFAULTS INCLUDING IDENTITY INCLUDING CONSTRAINTS,
    locked_by    text COLLATE "C",
    locked_until timestamptz,
    PRIMARY KEY (id)
);
CREATE INDEX lease_events_ready ON bench.lease_events (seq) WHERE state = 0;
CREATE INDEX lease_events_published_at ON bench.lease_events (published_at) WHERE published_at IS NOT NULL;
CREATE INDEX lease_events_aggregate ON bench.lease_events (aggregate_type, aggregate_id, seq)
