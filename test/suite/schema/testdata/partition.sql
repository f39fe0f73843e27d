-- How outbox_events could become a table that is partitioned by seq: in one transaction, with the rows where they are.
-- Run it with the outbox's schema as search_path, while no relay is at work, and give the roles of the outbox again.
DO $$
DECLARE
    -- The last number that was drawn, whether there is an event of it or not: no number may come twice.
    last      CONSTANT bigint := (SELECT last_value - (NOT is_called)::integer FROM outbox_events_seq_seq);
    partition record;
BEGIN
    ALTER TABLE outbox_events RENAME TO outbox_events_old;
    ALTER INDEX outbox_events_pkey RENAME TO outbox_events_old_pkey;
    ALTER INDEX outbox_events_id RENAME TO outbox_events_old_id;
    ALTER INDEX outbox_events_aggregate RENAME TO outbox_events_old_aggregate;
    ALTER TABLE outbox_events_old ALTER seq DROP IDENTITY; -- which no partition may have, from PostgreSQL 17 on
    -- Triggers for each row come from the table; those for a statement are each partition's own.
    DROP TRIGGER outbox_events_keep_open ON outbox_events_old;
    DROP TRIGGER outbox_events_fill_lane ON outbox_events_old;

    CREATE TABLE outbox_events (LIKE outbox_events_old INCLUDING DEFAULTS INCLUDING STORAGE INCLUDING COMMENTS)
        PARTITION BY RANGE (seq);
    ALTER TABLE outbox_events ADD CONSTRAINT outbox_events_pkey PRIMARY KEY (lane, seq);
    CREATE INDEX outbox_events_id ON outbox_events (id);
    CREATE INDEX outbox_events_aggregate ON outbox_events (aggregate_type, aggregate_id);
    EXECUTE format('ALTER TABLE outbox_events ATTACH PARTITION outbox_events_old FOR VALUES FROM (MINVALUE) TO (%s)',
        last + 1);
    EXECUTE format('ALTER TABLE outbox_events ALTER seq ADD GENERATED ALWAYS AS IDENTITY
        (SEQUENCE NAME outbox_events_seq_seq START %s CACHE 1)', last + 1);

    FOR partition IN SELECT * FROM (VALUES
        ('outbox_events_1', (last + 1)::text, (last + 1001)::text), ('outbox_events_2', (last + 1001)::text, 'MAXVALUE'))
        p(name, low, high)
    LOOP
        -- What the table has as settings each partition must have: the table itself cannot.
        EXECUTE format('CREATE TABLE %I PARTITION OF outbox_events FOR VALUES FROM (%s) TO (%s) WITH (fillfactor = 49,
            autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05,
            autovacuum_analyze_scale_factor = 0.02)', partition.name, partition.low, partition.high);
    END LOOP;
    FOR partition IN SELECT * FROM (VALUES ('outbox_events'), ('outbox_events_1'), ('outbox_events_2')) p(name) LOOP
        EXECUTE format('CREATE TRIGGER outbox_events_append_only
            BEFORE UPDATE OF seq, id, created_at, lane, namespace, event_type, aggregate_type, aggregate_id, tenant_id,
                dedupe_key
            ON %I EXECUTE FUNCTION outbox_reject_change(''Only state, published_at, attempt_count and last_error may '
                'change.'')', partition.name);
        EXECUTE format('CREATE TRIGGER outbox_events_erase_only
            BEFORE UPDATE OF payload_json, headers ON %I WHEN (NOT outbox_erasing())
            EXECUTE FUNCTION outbox_reject_change(''Payload and headers are erased by outbox_erase, and not '
                'changed.'')', partition.name);
        EXECUTE format('CREATE TRIGGER outbox_events_keep_all BEFORE TRUNCATE ON %I
            EXECUTE FUNCTION outbox_reject_change(''It would take events that nobody has published yet.'')',
            partition.name);
    END LOOP;
    CREATE TRIGGER outbox_events_keep_open
        AFTER DELETE ON outbox_events FOR EACH ROW WHEN (OLD.state NOT IN (6, 7))
        EXECUTE FUNCTION outbox_reject_change('Only published and discarded events may be deleted.');
    CREATE TRIGGER outbox_events_fill_lane BEFORE INSERT ON outbox_events FOR EACH ROW
        WHEN (NEW.lane IS NULL) EXECUTE FUNCTION outbox_fill_lane();

    -- A view knows its table by its number, and not by its name.
    EXECUTE 'CREATE OR REPLACE VIEW outbox_status WITH (security_invoker = true) AS '
        || replace(pg_get_viewdef('outbox_status'::regclass), 'outbox_events_old', 'outbox_events');
END
$$;
