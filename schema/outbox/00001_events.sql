-- The outbox itself: one row per event, written by the producer in its own transaction.
--
-- Nothing in these files names a schema: they install into the first schema of search_path, so the
-- same file serves goose, psql and our own migrator. What runs later (function bodies) is bound to that
-- schema when it is created.

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
    installed_at   timestamptz NOT NULL DEFAULT now(),
    erasing        xid8 -- the transaction in which outbox_erase (00011) is at work; null at every commit
);
COMMENT ON TABLE outbox_meta IS 'One row: the schema''s version, the lane layout in force, and an id that tells this '
    'outbox from any other.';
COMMENT ON COLUMN outbox_meta.erasing IS 'The transaction in which outbox_erase is at work. Null at every commit.';
INSERT INTO outbox_meta (schema_version) VALUES (1);

-- The lane of an aggregate, layout 1: 64 lanes, from 1 on, so that 0 is none. Every row carries its lane. IMMUTABLE
-- with a bound body, so that it is inlined. Another layout begins behind the last lane of this one.
CREATE FUNCTION outbox_lane(namespace text, aggregate_type text, aggregate_id text) RETURNS smallint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (
        (pg_catalog.hashtextextended(namespace || '/' || aggregate_type || '/' || aggregate_id, 0) & 63) + 1)::smallint;

-- Whoever writes an event calls this, whatever the default privileges of the database say.
GRANT EXECUTE ON FUNCTION outbox_lane(text, text, text) TO PUBLIC;
COMMENT ON FUNCTION outbox_lane(text, text, text) IS 'The lane of an aggregate in layout 1, 1 to 64.';

-- Every producer's transaction pays for what stands here. PostgreSQL reads and plans a CHECK, and the expression or the
-- predicate of an index, anew for every statement that inserts: so there is none. What an event must be is looked at by
-- who writes it (00002). And what publishing changes is in no index: then a settle touches none, and the new version
-- of the row stands on the page of the old one (HOT). An index that names state, published_at, attempt_count or
-- last_error ends that for the whole table.
--
-- Nothing but (lane, seq) is unique, so that the table can be partitioned by seq: an id is unique because it is made
-- so.
--
-- Columns of fixed width come first, so that a row carries no padding. Text is compared by its bytes:
-- that is faster than a language's order, and no index breaks when the system's collations change.
--
-- Three columns have a type with a limit of its own. PostgreSQL keeps the plan of a type's check for the session, and
-- makes that of a table's constraint anew for every statement. In a lane that does not exist an event would wait for
-- good; and a relay would have to read a payload of a gigabyte into memory to see that it is too large.
CREATE DOMAIN outbox_lane_number AS smallint
    CONSTRAINT outbox_lane_is_left_out_or_1_to_64 CHECK (VALUE BETWEEN 1 AND 64);
-- What comes out of another table may be compressed: then its size is counted anew. Four bytes are its header.
CREATE DOMAIN outbox_payload AS json CONSTRAINT outbox_events_payload_size CHECK (
    CASE WHEN pg_column_compression(VALUE) IS NULL THEN pg_column_size(VALUE) <= 9437184 + 4
         ELSE octet_length(VALUE::text) <= 9437184 END);
CREATE DOMAIN outbox_headers AS json CONSTRAINT outbox_events_headers CHECK (
    CASE WHEN pg_column_compression(VALUE) IS NULL THEN pg_column_size(VALUE) <= 524288 + 4
         ELSE octet_length(VALUE::text) <= 524288 END);

CREATE TABLE outbox_events (
    -- The order of events. Drawn before the commit, so a lower number may become visible later: the
    -- relay reads behind a watermark. CACHE 1, or sessions would draw blocks and break the order.
    seq             bigint      NOT NULL GENERATED ALWAYS AS IDENTITY (CACHE 1),
    id              uuid        NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(), -- of the transaction's start: nothing is ordered by it
    published_at    timestamptz,
    attempt_count   integer     NOT NULL DEFAULT 0, -- failures that were the event's own fault
    lane            outbox_lane_number NOT NULL, -- left out: a trigger fills it in (00002)
    state           smallint    NOT NULL DEFAULT 0,
    namespace       text COLLATE "C" NOT NULL DEFAULT 'default',
    event_type      text COLLATE "C" NOT NULL,
    aggregate_type  text COLLATE "C" NOT NULL,
    aggregate_id    text COLLATE "C" NOT NULL,
    tenant_id       text COLLATE "C",
    dedupe_key      text COLLATE "C",
    -- json and not jsonb: what was written is what is published, byte for byte.
    payload_json    outbox_payload NOT NULL,
    headers         outbox_headers,
    last_error      text COLLATE "C",
    CONSTRAINT outbox_events_pkey PRIMARY KEY (lane, seq)
) WITH (
    -- Room for a second version of every row on its page. From 50 on there are sizes of rows with which the last of a
    -- page does not fit, and nothing is saved: it goes elsewhere, and into every index.
    fillfactor = 49,
    -- By default a fifth of the table must be dead before it is vacuumed: 20 million settled events in a
    -- table of 100 million.
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.02
);
COMMENT ON TABLE outbox_events IS 'One row per event. Producers insert, the relay settles; only state, published_at, '
    'attempt_count and last_error ever change.';
COMMENT ON COLUMN outbox_events.state IS '0 ready, 1 held: outbox_held says how, 5 dead, 6 published, 7 discarded';
CREATE INDEX outbox_events_id ON outbox_events (id);
-- What one asks at three in the morning: what became of this order? Without seq, so that events of one aggregate share
-- an entry, and the planner does not take it for an index by number. Others are optional: see schema/optional.
CREATE INDEX outbox_events_aggregate ON outbox_events (aggregate_type, aggregate_id);

-- What keeps an event from being published; empty while all is well, and emit never sees it. An event is held (its
-- state is 1) while it has a row here. Each fact has one home: how it is held, until and since when stand here alone,
-- attempts and the last error on the event. Whoever changes a held event locks the row here first, then the event.
CREATE TABLE outbox_held (
    seq            bigint      NOT NULL,
    version        bigint      NOT NULL GENERATED ALWAYS AS IDENTITY, -- another at every change, and never one twice
    due            timestamptz, -- when a retry is due
    since          timestamptz NOT NULL DEFAULT clock_timestamp(), -- it is held so
    lane           smallint    NOT NULL,
    kind           smallint    NOT NULL CONSTRAINT outbox_held_kind
        CHECK (kind BETWEEN 1 AND 4 AND (kind <> 1 OR due IS NOT NULL)),
    namespace      text COLLATE "C" NOT NULL,
    event_type     text COLLATE "C" NOT NULL,
    aggregate_type text COLLATE "C" NOT NULL,
    aggregate_id   text COLLATE "C" NOT NULL,
    CONSTRAINT outbox_held_pkey PRIMARY KEY (lane, seq)
);
COMMENT ON TABLE outbox_held IS 'One row per event that is held: it waits for its next attempt, for a relay that knows '
    'it, or behind another. Empty while all is well.';
COMMENT ON COLUMN outbox_held.kind IS '1 retrying, 2 parked, 3 waiting behind a held event, 4 dead and blocking its '
    'aggregate';
-- Held events by aggregate. The type comes before the number: a new owner steps from one first row to the next, however
-- many wait behind each.
CREATE INDEX outbox_held_line ON outbox_held (lane, namespace, aggregate_type, aggregate_id, event_type, seq);
-- Retries that are due, and what was parked long ago, however many more are neither.
CREATE INDEX outbox_held_due ON outbox_held (lane, kind, due, seq);
CREATE INDEX outbox_held_since ON outbox_held (lane, kind, since, seq);

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
    BEFORE UPDATE OF seq, id, created_at, lane, namespace, event_type, aggregate_type, aggregate_id, tenant_id,
        dedupe_key, payload_json, headers
    ON outbox_events
    EXECUTE FUNCTION outbox_reject_change('Only state, published_at, attempt_count and last_error may change.');
-- AFTER, which refuses as well, for the same reason: retention deletes millions of rows.
CREATE TRIGGER outbox_events_keep_open
    AFTER DELETE ON outbox_events FOR EACH ROW WHEN (OLD.state NOT IN (6, 7))
    EXECUTE FUNCTION outbox_reject_change('Only published and discarded events may be deleted.');
CREATE TRIGGER outbox_events_keep_all
    BEFORE TRUNCATE ON outbox_events
    EXECUTE FUNCTION outbox_reject_change('It would take events that nobody has published yet.');

-- Every migration that makes functions ends with this. A plpgsql body looks for its tables by
-- search_path when it runs: the path is pinned to the schema we are in, with temporary tables last, so
-- that no caller can put other tables in their place. It reads its text again in every session as well:
-- a session may take backslashes for escapes, and then an expression with one is another expression. And
-- nobody calls a function who was not granted it. What somebody else makes in our schema would be found there all the
-- same, and some of our functions run as the owner: so not everybody may make something there.
-- What is so already is left alone: each change writes the function's row anew, with its text, and most migrations find
-- dozens of functions that an earlier one has sealed.
-- +goose StatementBegin
CREATE FUNCTION outbox_seal() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    own_schema CONSTANT oid := (SELECT pronamespace FROM pg_proc WHERE oid = 'outbox_seal()'::regprocedure);
    own_path   CONSTANT text := format('search_path=pg_catalog, %s, pg_temp', own_schema::regnamespace);
    function   record;
BEGIN
    IF has_schema_privilege('public', own_schema, 'CREATE') THEN
        RAISE EXCEPTION 'everybody may create objects in schema %, where functions of the outbox would use them: '
            'REVOKE CREATE ON SCHEMA % FROM PUBLIC', own_schema::regnamespace, own_schema::regnamespace
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    FOR function IN
        SELECT p.oid::regprocedure AS signature,
               l.lanname = 'plpgsql' AND own_path <> ALL (coalesce(p.proconfig, '{}')) AS lacks_path,
               l.lanname = 'plpgsql' AND strpos(p.prosrc, chr(92)) > 0
                   AND 'standard_conforming_strings=on' <> ALL (coalesce(p.proconfig, '{}')) AS lacks_strings,
               has_function_privilege('public', p.oid, 'EXECUTE') AS is_public
          FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
         WHERE p.pronamespace = own_schema AND starts_with(p.proname, 'outbox_') AND p.proname <> 'outbox_lane'
    LOOP
        IF function.lacks_path THEN
            EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, %s, pg_temp', function.signature,
                own_schema::regnamespace);
        END IF;
        IF function.lacks_strings THEN
            EXECUTE format('ALTER FUNCTION %s SET standard_conforming_strings = on', function.signature);
        END IF;
        IF function.is_public THEN
            EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', function.signature);
        END IF;
    END LOOP;
END
$$;
-- +goose StatementEnd
SELECT outbox_seal();

-- +goose Down
DROP TABLE outbox_held;
DROP TABLE outbox_events;
DROP DOMAIN outbox_headers;
DROP DOMAIN outbox_payload;
DROP DOMAIN outbox_lane_number;
DROP FUNCTION outbox_seal();
DROP FUNCTION outbox_reject_change();
DROP FUNCTION outbox_lane(text, text, text);
DROP TABLE outbox_meta;
