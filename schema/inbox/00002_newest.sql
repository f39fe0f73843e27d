-- The guard against going backwards: the newest event that a consumer has applied of each aggregate.

-- +goose Up

CREATE TABLE inbox_newest (
    seq            bigint NOT NULL CONSTRAINT inbox_newest_seq CHECK (seq > 0),
    -- A day and not a time: retention alone asks for it, and an indexed column that changed with every event would
    -- make every event write to all indexes.
    applied_on     date   NOT NULL DEFAULT (now() AT TIME ZONE 'UTC')::date,
    consumer       text COLLATE "C" NOT NULL CONSTRAINT inbox_newest_consumer CHECK (consumer ~ '^[a-z0-9._-]{1,64}$'),
    namespace      text COLLATE "C" NOT NULL
        CONSTRAINT inbox_newest_namespace CHECK (octet_length(namespace) BETWEEN 1 AND 128),
    aggregate_type text COLLATE "C" NOT NULL
        CONSTRAINT inbox_newest_aggregate_type CHECK (octet_length(aggregate_type) BETWEEN 1 AND 128),
    aggregate_id   text COLLATE "C" NOT NULL
        CONSTRAINT inbox_newest_aggregate_id CHECK (octet_length(aggregate_id) BETWEEN 1 AND 512),
    CONSTRAINT inbox_newest_pkey PRIMARY KEY (consumer, namespace, aggregate_type, aggregate_id)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02);
COMMENT ON TABLE inbox_newest IS 'One row per aggregate and consumer: the outbox_seq of the newest event that was '
    'applied.';
CREATE INDEX inbox_newest_applied_on ON inbox_newest (applied_on);

-- Remembers seq as the newest of the aggregate: true if it is newer than what the consumer has applied before. False
-- is an older event, or the same once more: leave it out, commit, acknowledge. Whoever is at the same aggregate in
-- another transaction is waited for. Compare numbers of one outbox only: a second one needs another consumer's name.
-- The namespace is the message's attribute of that name; null, as where it has none, is 'default'.
--   SELECT inbox_newer('read-model', 'default', 'vendor_order', '42', 1234);
-- +goose StatementBegin
CREATE FUNCTION inbox_newer(consumer text, namespace text, aggregate_type text, aggregate_id text, seq bigint)
    RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO inbox_newest AS n (consumer, namespace, aggregate_type, aggregate_id, seq)
    VALUES (inbox_newer.consumer, coalesce(inbox_newer.namespace, 'default'), inbox_newer.aggregate_type,
           inbox_newer.aggregate_id, inbox_newer.seq)
    ON CONFLICT ON CONSTRAINT inbox_newest_pkey DO UPDATE SET seq = excluded.seq, applied_on = excluded.applied_on
       WHERE n.seq < excluded.seq;
    RETURN FOUND;
END
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION inbox_newer(text, text, text, text, bigint) IS 'Remembers an event''s outbox_seq as the newest '
    'that a consumer has applied of an aggregate: true if it is newer than before.';

SELECT inbox_seal();
UPDATE inbox_meta SET schema_version = 2;

-- +goose Down
DROP FUNCTION inbox_newer(text, text, text, text, bigint);
DROP TABLE inbox_newest;
UPDATE inbox_meta SET schema_version = 1;
