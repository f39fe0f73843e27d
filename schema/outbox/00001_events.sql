-- The outbox itself: one row per event, written by the producer in its own transaction.
--
-- Nothing in these files names a schema: they install into the first schema of search_path, so the
-- same file serves goose, psql and our own migrator. What runs later (function bodies, index
-- expressions) is bound to that schema when it is created.

-- +goose Up

-- +goose StatementBegin
DO $$
BEGIN
    IF current_setting('server_version_num')::integer < 150000 THEN
        RAISE EXCEPTION 'PostgreSQL % is too old: the outbox needs 15 or newer', current_setting('server_version')
            USING ERRCODE = 'feature_not_supported';
    END IF;
    -- JSON is UTF-8, and its bytes must come out as they went in.
    IF current_setting('server_encoding') <> 'UTF8' THEN
        RAISE EXCEPTION 'the database has encoding %: the outbox needs UTF8', current_setting('server_encoding')
            USING ERRCODE = 'feature_not_supported', HINT = 'CREATE DATABASE ... ENCODING ''UTF8'' TEMPLATE template0';
    END IF;
END
$$;
-- +goose StatementEnd

-- What every part of the system must agree on, whichever tool applied the migrations.
CREATE TABLE outbox_meta (
    singleton      boolean     PRIMARY KEY DEFAULT true CHECK (singleton),
    schema_version integer     NOT NULL,
    lane_layout    smallint    NOT NULL DEFAULT 1,
    installation   uuid        NOT NULL DEFAULT gen_random_uuid(),
    installed_at   timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE outbox_meta IS 'One row: the schema''s version, the lane layout in force, and an id that tells this '
    'outbox from any other.';
INSERT INTO outbox_meta (schema_version) VALUES (1);

-- The lane of an aggregate, layout 1: 64 lanes. A function and not a column, so that producers need
-- not know that lanes exist; IMMUTABLE with a bound body, so that it is inlined into index and query.
CREATE FUNCTION outbox_lane(namespace text, aggregate_type text, aggregate_id text) RETURNS smallint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (pg_catalog.hashtextextended(namespace || '/' || aggregate_type || '/' || aggregate_id, 0) & 63)::smallint;

-- Whoever writes a row evaluates the index expression and so calls this, whatever the default
-- privileges of the database say.
GRANT EXECUTE ON FUNCTION outbox_lane(text, text, text) TO PUBLIC;
COMMENT ON FUNCTION outbox_lane(text, text, text) IS 'The lane of an aggregate in layout 1, 0 to 63.';

-- Columns of fixed width come first, so that a row carries no padding. Text is compared by its bytes:
-- that is faster than a language's order, and no index breaks when the system's collations change.
CREATE TABLE outbox_events (
    -- The order of events. Drawn before the commit, so a lower number may become visible later: the
    -- relay reads behind a watermark. CACHE 1, or sessions would draw blocks and break the order.
    seq             bigint      NOT NULL GENERATED ALWAYS AS IDENTITY (CACHE 1),
    id              uuid        NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(), -- of the transaction's start: nothing is ordered by it
    published_at    timestamptz,
    next_attempt_at timestamptz, -- when a retry is due, since when a row is parked
    attempt_count   integer     NOT NULL DEFAULT 0, -- failures that were the event's own fault
    state           smallint    NOT NULL DEFAULT 0,
    namespace       text COLLATE "C" NOT NULL DEFAULT 'default',
    event_type      text COLLATE "C" NOT NULL,
    aggregate_type  text COLLATE "C" NOT NULL,
    aggregate_id    text COLLATE "C" NOT NULL,
    tenant_id       text COLLATE "C",
    dedupe_key      text COLLATE "C",
    -- json and not jsonb: what was written is what is published, byte for byte.
    payload_json    json        NOT NULL,
    headers         json,
    last_error      text COLLATE "C",
    CONSTRAINT outbox_events_pkey PRIMARY KEY (id),
    -- One CHECK: PostgreSQL keeps a CHECK as text, and reads and plans it again for every statement that
    -- inserts. So what an insert alone decides is looked at by outbox_check_event, whose plan the session
    -- keeps; make bench-emit has what each costs.
    CONSTRAINT outbox_events_state CHECK (state BETWEEN 0 AND 7 AND (state = 6) = (published_at IS NOT NULL)
        AND (state <> 1 OR next_attempt_at IS NOT NULL) AND (last_error IS NULL OR length(last_error) <= 2048))
) WITH (
    -- By default a fifth of the table must be dead before it is vacuumed: 20 million settled events in a
    -- table of 100 million, all of which the ready index still leads to.
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.02
);
COMMENT ON TABLE outbox_events IS 'One row per event. Producers insert, the relay settles; only state, published_at, '
    'attempt_count, last_error and next_attempt_at ever change.';
COMMENT ON COLUMN outbox_events.state IS '0 ready, 1 retrying, 2 parked, 3 waiting behind a held event, 4 dead and '
    'blocking its aggregate, 5 dead, 6 published, 7 discarded';

-- The only index that is read with the watermark: what a lane's holder has to publish next.
CREATE INDEX outbox_events_ready ON outbox_events (outbox_lane(namespace, aggregate_type, aggregate_id), seq)
    WHERE state = 0;
-- Held rows, read by aggregate and type; empty while all is well, so it costs nothing at emit. The type comes before
-- the number: a new owner steps from one first row to the next, however many wait behind each.
CREATE INDEX outbox_events_held ON outbox_events
    (outbox_lane(namespace, aggregate_type, aggregate_id), namespace, aggregate_type, aggregate_id, event_type, seq)
        WHERE state IN (1, 2, 3, 4);
-- Retries that are due, and parked rows, however many more are neither; empty in health as well.
CREATE INDEX outbox_events_due ON outbox_events (outbox_lane(namespace, aggregate_type, aggregate_id), state,
    next_attempt_at, seq) WHERE state IN (1, 2);
-- Dead and discarded rows, for people and for retention; empty in health as well.
CREATE INDEX outbox_events_dead ON outbox_events (state, seq) WHERE state IN (4, 5, 7);
-- Retention, and look-ups by time of publishing; a new row is not in it.
CREATE INDEX outbox_events_published_at ON outbox_events (published_at) WHERE published_at IS NOT NULL;
-- Look-ups by people, newest first. These two are the price of being able to ask at emit time.
CREATE INDEX outbox_events_event_type ON outbox_events (event_type, seq);
CREATE INDEX outbox_events_aggregate ON outbox_events (aggregate_type, aggregate_id, seq);

-- +goose StatementBegin
CREATE FUNCTION outbox_reject_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% of % is refused: what was written is never changed', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation', HINT = TG_ARGV[0];
END
$$;
-- +goose StatementEnd

-- Column grants do not bind the owner; these do. The first fires once for a statement that names one of
-- these columns. For each row it would cost the settle, which names none of them: PostgreSQL locks every
-- row before it asks whether a trigger BEFORE UPDATE applies, one more WAL record per event.
CREATE TRIGGER outbox_events_append_only
    BEFORE UPDATE OF seq, id, created_at, namespace, event_type, aggregate_type, aggregate_id, tenant_id, dedupe_key,
        payload_json, headers
    ON outbox_events
    EXECUTE FUNCTION outbox_reject_change(
        'Only state, published_at, attempt_count, last_error and next_attempt_at may change.');
-- AFTER, which refuses as well, for the same reason: retention deletes millions of rows.
CREATE TRIGGER outbox_events_keep_open
    AFTER DELETE ON outbox_events FOR EACH ROW WHEN (OLD.state NOT IN (6, 7))
    EXECUTE FUNCTION outbox_reject_change('Only published and discarded events may be deleted.');
CREATE TRIGGER outbox_events_keep_all
    BEFORE TRUNCATE ON outbox_events
    EXECUTE FUNCTION outbox_reject_change('It would take events that nobody has published yet.');

-- What an event must be, for whoever writes it. The errors are those of CHECK constraints, each with a
-- name of its own. No backslash: outbox_seal() would have to set one more thing at every call.
-- +goose StatementBegin
CREATE FUNCTION outbox_check_event() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    control  text; -- the control characters, as a class
    violated text := CASE
        WHEN NEW.id::text !~ '^.{14}7.{4}[89ab]' THEN 'id_is_uuid_v7'
        WHEN length(NEW.namespace) > 128 OR NEW.namespace !~ '^[A-Za-z0-9][A-Za-z0-9._-]*$' THEN 'namespace'
        WHEN length(NEW.event_type) > 128 OR NEW.event_type !~ '^[A-Za-z0-9][A-Za-z0-9._-]*$' THEN 'event_type'
        WHEN length(NEW.aggregate_type) > 128 OR NEW.aggregate_type !~ '^[A-Za-z0-9][A-Za-z0-9._-]*$'
             THEN 'aggregate_type'
        WHEN octet_length(NEW.aggregate_id) NOT BETWEEN 1 AND 512
             OR NEW.aggregate_id ~ ('[' || chr(1) || '-' || chr(31) || chr(127) || '-' || chr(159) || ']')
                THEN 'aggregate_id'
        WHEN octet_length(NEW.payload_json::text) > 9437184 THEN 'payload_size'
        -- Reading a key walks the whole document, so this also refuses what json stores but cannot read
        -- back: a NUL escape, half of a surrogate pair. What is no object has no eventId.
        WHEN NEW.payload_json IS NOT NULL AND (NEW.payload_json ->> 'eventId' = NEW.id::text) IS NOT TRUE
             THEN 'payload_is_envelope'
    END;
BEGIN
    -- An expression costs when it is first used in a transaction, and most events have none of these.
    IF violated IS NULL AND (NEW.tenant_id IS NOT NULL OR NEW.dedupe_key IS NOT NULL OR NEW.headers IS NOT NULL) THEN
        control := '[' || chr(1) || '-' || chr(31) || chr(127) || '-' || chr(159) || ']';
        violated := CASE
            WHEN octet_length(NEW.tenant_id) NOT BETWEEN 1 AND 128 OR NEW.tenant_id ~ control THEN 'tenant_id'
            WHEN octet_length(NEW.dedupe_key) NOT BETWEEN 1 AND 512 OR NEW.dedupe_key ~ control THEN 'dedupe_key'
            -- A key that names another tenant would let one tenant swallow the event of another. A tenant
            -- that is a UUID may stand in its key with or without hyphens.
            WHEN NOT starts_with(NEW.dedupe_key, NEW.tenant_id || '/')
                 AND (lower(replace(NEW.tenant_id, '-', '')) !~ '^[0-9a-f]{32}$' OR strpos(NEW.dedupe_key, '/') = 0
                      OR lower(replace(split_part(NEW.dedupe_key, '/', 1), '-', '')) <>
                         lower(replace(NEW.tenant_id, '-', '')))
                 THEN 'tenant_owns_key'
            -- Room for every header at its limit with each byte escaped. Looking for a reserved name walks
            -- these as well; outbox_emit holds them to all the rules.
            WHEN octet_length(NEW.headers::text) > 524288 OR json_typeof(NEW.headers) <> 'object'
                 OR NEW.headers ->> 'event_id' IS NOT NULL
                 THEN 'headers'
        END;
    END IF;
    IF violated IS NOT NULL THEN
        violated := TG_TABLE_NAME || '_' || violated;
        RAISE EXCEPTION 'new row for relation "%" violates check constraint "%"', TG_TABLE_NAME, violated
            USING ERRCODE = 'check_violation', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, CONSTRAINT = violated;
    END IF;
    RETURN NEW;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER outbox_events_check BEFORE INSERT ON outbox_events FOR EACH ROW EXECUTE FUNCTION outbox_check_event();

-- Every migration that makes functions ends with this. A plpgsql body looks for its tables by
-- search_path when it runs: the path is pinned to the schema we are in, with temporary tables last, so
-- that no caller can put other tables in their place. It reads its text again in every session as well:
-- a session may take backslashes for escapes, and then an expression with one is another expression. And
-- nobody calls a function who was not granted it.
-- +goose StatementBegin
CREATE FUNCTION outbox_seal() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    own_schema CONSTANT oid := (SELECT pronamespace FROM pg_proc WHERE oid = 'outbox_seal()'::regprocedure);
    function   record;
BEGIN
    FOR function IN
        SELECT p.oid::regprocedure AS signature, l.lanname = 'plpgsql' AS is_plpgsql,
               strpos(p.prosrc, chr(92)) > 0 AS has_backslash
          FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
         WHERE p.pronamespace = own_schema AND starts_with(p.proname, 'outbox_') AND p.proname <> 'outbox_lane'
    LOOP
        IF function.is_plpgsql THEN
            EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, %s, pg_temp', function.signature,
                own_schema::regnamespace);
            IF function.has_backslash THEN
                EXECUTE format('ALTER FUNCTION %s SET standard_conforming_strings = on', function.signature);
            END IF;
        END IF;
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', function.signature);
    END LOOP;
END
$$;
-- +goose StatementEnd
SELECT outbox_seal();

-- +goose Down
DROP TABLE outbox_events;
DROP FUNCTION outbox_check_event();
DROP FUNCTION outbox_seal();
DROP FUNCTION outbox_reject_change();
DROP FUNCTION outbox_lane(text, text, text);
DROP TABLE outbox_meta;
