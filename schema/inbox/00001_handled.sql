-- The inbox: what each consumer has handled, written in the consumer's own transaction.
--
-- It needs no outbox beside it, and may share a schema with one. As there, nothing names a schema: the files
-- install into the first schema of search_path.

-- +goose Up

-- +goose StatementBegin
DO $$
BEGIN
    IF current_setting('server_version_num')::integer < 150000 THEN
        RAISE EXCEPTION 'PostgreSQL % is too old: the inbox needs 15 or newer', current_setting('server_version')
            USING ERRCODE = 'feature_not_supported';
    END IF;
END
$$;
-- +goose StatementEnd

CREATE TABLE inbox_meta (
    singleton      boolean     PRIMARY KEY DEFAULT true CHECK (singleton),
    schema_version integer     NOT NULL,
    installed_at   timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE inbox_meta IS 'One row: the schema''s version, whichever tool applied the migrations.';
INSERT INTO inbox_meta (schema_version) VALUES (1);

-- The id comes first in the key: a UUIDv7 begins with its time, so what is written is near the end of the index,
-- whichever consumer writes it; and people ask who has handled an event.
CREATE TABLE inbox_handled (
    handled_at timestamptz NOT NULL DEFAULT now(), -- of the transaction's start: retention alone asks for it
    event_id   uuid        NOT NULL,
    consumer   text COLLATE "C" NOT NULL CONSTRAINT inbox_handled_consumer CHECK (consumer ~ '^[a-z0-9._-]{1,64}$'),
    CONSTRAINT inbox_handled_pkey PRIMARY KEY (event_id, consumer)
) WITH (
    -- By default a fifth of the table must be dead before it is vacuumed, and retention never deletes so much at once.
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.02
);
COMMENT ON TABLE inbox_handled IS 'One row per event that a consumer has handled. It is there if and only if the '
    'transaction with the effect committed.';
-- Retention. Rows come nearly in this order, so it grows at its end.
CREATE INDEX inbox_handled_at ON inbox_handled (handled_at);

-- Marks the event as handled by this consumer: true if it was not marked before. Call it first in the transaction of
-- the effect, and only go on when it is true. While another transaction has marked the event and not yet ended, the
-- call waits for it: true if that one rolls back, false if it commits.
--   BEGIN;
--   SELECT inbox_first('mailer', '0198c0de-0000-7000-8000-000000000001');
--   ... the effect, if it was true ...
--   COMMIT;
-- +goose StatementBegin
CREATE FUNCTION inbox_first(consumer text, event_id uuid) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    -- Without a target: a consumer needs no right to read what others have handled.
    INSERT INTO inbox_handled (consumer, event_id) VALUES (inbox_first.consumer, inbox_first.event_id)
        ON CONFLICT DO NOTHING;
    RETURN FOUND;
END
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION inbox_first(text, uuid) IS 'Marks an event as handled by a consumer, in the transaction of its '
    'effect: true if it was not before.';

-- Every migration that makes functions ends with this; outbox_seal() has the reasons. No body here has a backslash.
-- +goose StatementBegin
CREATE FUNCTION inbox_seal() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    own_schema CONSTANT oid := (SELECT pronamespace FROM pg_proc WHERE oid = 'inbox_seal()'::regprocedure);
    function   regprocedure;
BEGIN
    IF has_schema_privilege('public', own_schema, 'CREATE') THEN
        RAISE EXCEPTION 'everybody may create objects in schema %, where functions of the inbox would use them: '
            'REVOKE CREATE ON SCHEMA % FROM PUBLIC', own_schema::regnamespace, own_schema::regnamespace
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    FOR function IN
        SELECT p.oid FROM pg_proc p WHERE p.pronamespace = own_schema AND starts_with(p.proname, 'inbox_')
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, %s, pg_temp', function,
            own_schema::regnamespace);
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', function);
    END LOOP;
END
$$;
-- +goose StatementEnd
SELECT inbox_seal();

-- +goose Down
DROP FUNCTION inbox_seal();
DROP FUNCTION inbox_first(text, uuid);
DROP TABLE inbox_handled;
DROP TABLE inbox_meta;
