-- How outbox_events could become a partitioned table, in one transaction and with the rows in place.
ALTER TABLE outbox_events RENAME TO outbox_events_old;
ALTER TABLE outbox_events_old ALTER seq DROP IDENTITY;
ALTER TABLE outbox_events_old DROP CONSTRAINT outbox_events_pkey, ADD CONSTRAINT outbox_events_old_pkey PRIMARY KEY (id, seq);
DROP TRIGGER outbox_events_append_only ON outbox_events_old;
DROP TRIGGER outbox_events_keep_open ON outbox_events_old;
CREATE TABLE outbox_events (LIKE outbox_events_old INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE INCLUDING COMMENTS) PARTITION BY RANGE (seq);
ALTER TABLE outbox_events ALTER seq ADD GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME outbox_events_seq_seq CACHE 1);
SELECT setval('outbox_events_seq_seq', (SELECT max(seq) FROM outbox_events_old));
ALTER TABLE outbox_events ADD CONSTRAINT outbox_events_pkey PRIMARY KEY (id, seq);
ALTER INDEX outbox_events_ready RENAME TO outbox_events_old_ready;
CREATE INDEX outbox_events_ready ON outbox_events (outbox_lane(namespace, aggregate_type, aggregate_id), seq) WHERE state = 0;
ALTER TABLE outbox_events ATTACH PARTITION outbox_events_old FOR VALUES FROM (MINVALUE) TO (11);
CREATE TABLE outbox_events_new PARTITION OF outbox_events FOR VALUES FROM (11) TO (MAXVALUE);
CREATE TRIGGER outbox_events_append_only
    BEFORE UPDATE OF seq, id, created_at, namespace, event_type, aggregate_type, aggregate_id, tenant_id, dedupe_key, payload_json, headers
    ON outbox_events EXECUTE FUNCTION outbox_reject_change('');
CREATE TRIGGER outbox_events_keep_open
    AFTER DELETE ON outbox_events FOR EACH ROW WHEN (OLD.state NOT IN (6, 7)) EXECUTE FUNCTION outbox_reject_change('');
