-- What an event must be, emit for every language that can run SQL, and the dedupe keys behind it.

-- +goose Up

-- What an event must be. The errors are those of CHECK constraints, each with a name of its own. Go's Emit has checked
-- what it writes; outbox_emit asks here, and the trigger does for whoever writes by hand. No backslash: outbox_seal()
-- would have to set one more thing at every call.
-- +goose StatementBegin
CREATE FUNCTION outbox_check_event(id uuid, namespace text, event_type text, aggregate_type text, aggregate_id text,
    tenant_id text, dedupe_key text, payload_json json, headers json)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    control  text; -- the control characters, as a class
    violated text := CASE
        WHEN id::text !~ '^.{14}7.{4}[89ab]' THEN 'id_is_uuid_v7'
        WHEN length(namespace) > 128 OR namespace !~ '^[A-Za-z0-9][A-Za-z0-9._-]*$' THEN 'namespace'
        WHEN length(event_type) > 128 OR event_type !~ '^[A-Za-z0-9][A-Za-z0-9._-]*$' THEN 'event_type'
        WHEN length(aggregate_type) > 128 OR aggregate_type !~ '^[A-Za-z0-9][A-Za-z0-9._-]*$' THEN 'aggregate_type'
        WHEN octet_length(aggregate_id) NOT BETWEEN 1 AND 512
             OR aggregate_id ~ ('[' || chr(1) || '-' || chr(31) || chr(127) || '-' || chr(159) || ']')
                THEN 'aggregate_id'
        WHEN octet_length(payload_json::text) > 9437184 THEN 'payload_size'
        -- Reading a key walks the whole document, so this also refuses what json stores but cannot read
        -- back: a NUL escape, half of a surrogate pair. What is no object has no eventId.
        WHEN payload_json IS NOT NULL AND (payload_json ->> 'eventId' = id::text) IS NOT TRUE
             THEN 'payload_is_envelope'
    END;
BEGIN
    -- An expression costs when it is first used in a transaction, and most events have none of these.
    IF violated IS NULL AND (tenant_id IS NOT NULL OR dedupe_key IS NOT NULL OR headers IS NOT NULL) THEN
        control := '[' || chr(1) || '-' || chr(31) || chr(127) || '-' || chr(159) || ']';
        violated := CASE
            WHEN octet_length(tenant_id) NOT BETWEEN 1 AND 128 OR tenant_id ~ control THEN 'tenant_id'
            WHEN octet_length(dedupe_key) NOT BETWEEN 1 AND 512 OR dedupe_key ~ control THEN 'dedupe_key'
            -- A key that names another tenant would let one tenant swallow the event of another. A tenant
            -- that is a UUID may stand in its key with or without hyphens.
            WHEN NOT starts_with(dedupe_key, tenant_id || '/')
                 AND (lower(replace(tenant_id, '-', '')) !~ '^[0-9a-f]{32}$' OR strpos(dedupe_key, '/') = 0
                      OR lower(replace(split_part(dedupe_key, '/', 1), '-', '')) <> lower(replace(tenant_id, '-', '')))
                 THEN 'tenant_owns_key'
            -- Room for every header at its limit with each byte escaped. Looking for a reserved name walks
            -- these as well; outbox_emit holds them to all the rules.
            WHEN octet_length(headers::text) > 524288 OR json_typeof(headers) <> 'object'
                 OR headers ->> 'event_id' IS NOT NULL
                 THEN 'headers'
        END;
    END IF;
    IF violated IS NOT NULL THEN
        violated := 'outbox_events_' || violated;
        RAISE EXCEPTION 'new row for relation "outbox_events" violates check constraint "%"', violated
            USING ERRCODE = 'check_violation', TABLE = 'outbox_events', CONSTRAINT = violated,
                  SCHEMA = (SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                             WHERE c.oid = 'outbox_events'::regclass);
    END IF;
END
$$;

CREATE FUNCTION outbox_fill_lane() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM outbox_check_event(NEW.id, NEW.namespace, NEW.event_type, NEW.aggregate_type, NEW.aggregate_id,
        NEW.tenant_id, NEW.dedupe_key, NEW.payload_json, NEW.headers);
    -- Of a name that is missing: its own column says so.
    NEW.lane := coalesce(outbox_lane(NEW.namespace, NEW.aggregate_type, NEW.aggregate_id), 1);
    RETURN NEW;
END
$$;
-- +goose StatementEnd
-- For whoever writes by hand. Our own statements bring the lane and skip it. PostgreSQL plans the condition anew for
-- every statement, so every emit would pay for one more comparison in it.
CREATE TRIGGER outbox_events_fill_lane BEFORE INSERT ON outbox_events FOR EACH ROW
    WHEN (NEW.lane IS NULL) EXECUTE FUNCTION outbox_fill_lane();

-- A narrow table of its own: it outlives the events it points at, and the events can be partitioned.
-- tenant_id is '' where the event has none, so that two such events conflict.
--
-- Two columns have a type with a limit of its own, which costs less than a constraint of the table: see 00001. The
-- other names have the limit of the index.
CREATE DOMAIN outbox_key AS text COLLATE "C"
    CONSTRAINT outbox_dedupe_key_size CHECK (octet_length(VALUE) <= 512);
CREATE DOMAIN outbox_hash AS bytea
    CONSTRAINT outbox_dedupe_hash_size CHECK (octet_length(VALUE) <= 64);
CREATE TABLE outbox_dedupe (
    event_id     uuid        NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    namespace    text COLLATE "C" NOT NULL,
    event_type   text COLLATE "C" NOT NULL,
    tenant_id    text COLLATE "C" NOT NULL,
    dedupe_key   outbox_key  NOT NULL,
    content_hash outbox_hash NOT NULL,
    -- Whether the key was met again. An insert that returns true here found the key taken; the event's id
    -- cannot tell that, because a retry may bring the same one.
    repeated     boolean     NOT NULL DEFAULT false,
    CONSTRAINT outbox_dedupe_pkey PRIMARY KEY (namespace, event_type, tenant_id, dedupe_key)
);
COMMENT ON TABLE outbox_dedupe IS 'Which event a dedupe key stands for, for as long as the key is kept.';
-- For retention. A block-range index would be smaller, and useless from the first retention on: new
-- keys fill the room of the deleted ones, and then every range of blocks holds old and new.
CREATE INDEX outbox_dedupe_created_at ON outbox_dedupe (created_at);
-- A producer may update one column here, so that a conflict can lock the row; it must not give a key to
-- another event.
CREATE TRIGGER outbox_dedupe_append_only
    BEFORE UPDATE OF event_id, created_at, namespace, event_type, tenant_id, dedupe_key, content_hash ON outbox_dedupe
    EXECUTE FUNCTION outbox_reject_change('A dedupe key stands for one event until retention deletes it.');

-- PostgreSQL 18 has uuidv7(); this serves the versions before it as well.
CREATE FUNCTION outbox_uuid7() RETURNS uuid
    LANGUAGE sql VOLATILE PARALLEL SAFE
    RETURN encode(set_bit(set_bit(
        overlay(uuid_send(gen_random_uuid())
                PLACING substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
                FROM 1 FOR 6),
        52, 1), 53, 1), 'hex')::uuid;

-- Inserts events of which at least one has a dedupe key, in one statement. Answers one item per event,
-- in the order given: '+' inserted, '=' already enqueued, '!' the key holds other content; then the id
-- of the event that the key stands for.
--
-- DO UPDATE and not DO NOTHING: the loser of a race must be told the winner's id, and DO NOTHING
-- returns no row to it. The keys go in sorted, so that two calls with the same keys cannot deadlock.
-- +goose StatementBegin
CREATE FUNCTION outbox_emit_deduped(
    ids uuid[], namespaces text[], event_types text[], aggregate_types text[], aggregate_ids text[],
    tenant_ids text[], dedupe_keys text[], content_hashes bytea[], first_wins boolean[], payloads text[], headers text[]
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    outcome text;
BEGIN
    WITH given AS MATERIALIZED (
        SELECT g.*, coalesce(g.tenant, '') AS key_tenant
          FROM unnest(ids, namespaces, event_types, aggregate_types, aggregate_ids, tenant_ids, dedupe_keys,
               content_hashes, first_wins, payloads, headers)
               WITH ORDINALITY AS g(id, namespace, event_type, aggregate_type, aggregate_id, tenant, dedupe_key,
                   content_hash, first, payload, header, ord)
    ), keyed AS (
        INSERT INTO outbox_dedupe AS d (namespace, event_type, tenant_id, dedupe_key, event_id, content_hash)
        SELECT g.namespace, g.event_type, g.key_tenant, g.dedupe_key, g.id, g.content_hash
          FROM given g WHERE g.dedupe_key IS NOT NULL
         ORDER BY g.namespace, g.event_type, g.key_tenant, g.dedupe_key
            ON CONFLICT ON CONSTRAINT outbox_dedupe_pkey DO UPDATE SET repeated = true
        RETURNING d.namespace, d.event_type, d.tenant_id, d.dedupe_key, d.event_id, d.content_hash, d.repeated
    ), checked AS MATERIALIZED (
        SELECT g.*, coalesce(k.event_id, g.id) AS stands_for,
               CASE WHEN g.dedupe_key IS NULL OR NOT k.repeated THEN '+'
                    WHEN g.first OR k.content_hash = g.content_hash THEN '='
                    ELSE '!' END AS verdict
          FROM given g
          LEFT JOIN keyed k ON (k.namespace, k.event_type, k.tenant_id, k.dedupe_key)
                             = (g.namespace, g.event_type, g.key_tenant, g.dedupe_key)
    ), inserted AS (
        INSERT INTO outbox_events (lane, id, namespace, event_type, aggregate_type, aggregate_id, tenant_id, dedupe_key,
            payload_json, headers)
        SELECT outbox_lane(c.namespace, c.aggregate_type, c.aggregate_id), c.id, c.namespace, c.event_type,
               c.aggregate_type, c.aggregate_id, c.tenant, c.dedupe_key, c.payload::json, c.header::json
          FROM checked c WHERE c.verdict = '+' ORDER BY c.ord
    )
    SELECT string_agg(c.verdict || c.stands_for, ',' ORDER BY c.ord) INTO outcome FROM checked c;
    RETURN outcome;
END
$$;
-- +goose StatementEnd

-- The same for several events: when one key holds other content, none of them is inserted. The keys of
-- the others must go as well, or they would stand for events that do not exist and the retry would be
-- told "already enqueued"; a subtransaction takes them back and leaves the caller's transaction usable.
-- +goose StatementBegin
CREATE FUNCTION outbox_emit_all_or_none(
    ids uuid[], namespaces text[], event_types text[], aggregate_types text[], aggregate_ids text[],
    tenant_ids text[], dedupe_keys text[], content_hashes bytea[], first_wins boolean[], payloads text[], headers text[]
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    outcome text;
BEGIN
    outcome := outbox_emit_deduped(ids, namespaces, event_types, aggregate_types, aggregate_ids,
                                   tenant_ids, dedupe_keys, content_hashes, first_wins, payloads, headers);
    IF strpos(outcome, '!') > 0 THEN
        RAISE EXCEPTION 'dedupe mismatch' USING ERRCODE = 'PH001', DETAIL = outcome;
    END IF;
    RETURN outcome;
EXCEPTION WHEN SQLSTATE 'PH001' THEN
    GET STACKED DIAGNOSTICS outcome = PG_EXCEPTION_DETAIL;
    RETURN outcome;
END
$$;
-- +goose StatementEnd

-- Refuses the documents that parse but hurt whoever reads them: too deep, too many keys, numbers that
-- no reader can hold. The limits are those of the Go package.
--
-- Both expressions pass strings as a whole, so what is inside one counts for nothing. They are made for
-- few and long matches: measured, a match costs about a microsecond and a byte passed by 20 nanoseconds.
-- +goose StatementBegin
CREATE FUNCTION outbox_check_data(data json) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    shape    text; -- the document's brackets and colons
    brackets text;
BEGIN
    IF data IS NULL OR json_typeof(data) <> 'object' THEN
        RAISE EXCEPTION 'data: a JSON object is required, got %', coalesce(json_typeof(data), 'SQL NULL')
            USING ERRCODE = 'check_violation';
    END IF;
    IF data::text ~ ('^(?:[^"]|"(?:[^"\\]|\\.)*")*(?:'
        '[,:[[:space:]]-?(?:[0-9]\.?){41}'
        '|[0-9][eE][+-]?(?:[0-9]{41}|0*(?:[1-9][0-9]{3}|[4-9][0-9]{2}|3[1-9][0-9]|309)))') THEN
        RAISE EXCEPTION 'data: a number has more than 40 digits or an exponent beyond 308'
            USING ERRCODE = 'check_violation';
    END IF;
    shape := regexp_replace(data::text, '(?:[^][{}":]|"(?:[^"\\]|\\.)*")+', '', 'g');
    -- One kind of bracket, so that a round below takes away the innermost pairs and nothing else.
    brackets := translate(shape, '{}:', '[]');
    IF length(shape) - length(brackets) > 10000 THEN
        RAISE EXCEPTION 'data: more than 10000 keys' USING ERRCODE = 'check_violation';
    END IF;
    FOR level IN 1..64 LOOP
        EXIT WHEN brackets = '';
        brackets := replace(brackets, '[]', '');
    END LOOP;
    IF brackets <> '' THEN
        RAISE EXCEPTION 'data: nested deeper than 64 levels' USING ERRCODE = 'check_violation';
    END IF;
END
$$;
-- +goose StatementEnd

-- Refuses headers and actors that the Go package refuses: names outside the alphabet or kept by the relay
-- or a broker, values that are not short text.
-- +goose StatementBegin
CREATE FUNCTION outbox_check_headers(headers json) RETURNS void LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
    header record;
    number integer := 0;
BEGIN
    FOR header IN SELECT h.key, h.value FROM json_each(headers) h LOOP
        number := number + 1;
        IF length(header.key) > 128 OR header.key !~ '^[A-Za-z0-9][A-Za-z0-9._-]*$' THEN
            RAISE EXCEPTION 'headers: a name must be at most 128 letters, digits, ''.'', ''_'' and ''-'', '
                'and begin with a letter or digit' USING ERRCODE = 'check_violation';
        END IF;
        IF header.key ~* '^(?:goog|nats-|x-posthaste-)'
            OR header.key ~*
               '^(?:event_id|event_type|namespace|aggregate_type|aggregate_id|created_at|tenant_id|dedupe_key|'
               'outbox_seq|cc|bcc)$' THEN
            RAISE EXCEPTION 'headers: the name % is reserved', header.key USING ERRCODE = 'check_violation';
        END IF;
        IF json_typeof(header.value) <> 'string' OR octet_length(header.value #>> '{}') > 1024
            OR header.value #>> '{}' ~ '[\x01-\x1f\x7f-\x9f]' THEN
            RAISE EXCEPTION 'headers: %: must be a text of at most 1024 bytes without control characters', header.key
                USING ERRCODE = 'check_violation';
        END IF;
    END LOOP;
    IF number > 64 THEN
        RAISE EXCEPTION 'headers: % of them, the limit is 64', number USING ERRCODE = 'check_violation';
    END IF;
END
$$;

CREATE FUNCTION outbox_check_actor(actor json) RETURNS void LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    IF json_typeof(actor) <> 'object' OR coalesce(actor ->> 'type', '') = '' OR coalesce(actor ->> 'id', '') = '' THEN
        RAISE EXCEPTION 'actor: an object with type and id is required' USING ERRCODE = 'check_violation';
    END IF;
    IF EXISTS (SELECT FROM json_each(actor) a WHERE a.key NOT IN ('type', 'id', 'name')
                  OR json_typeof(a.value) <> 'string'
                  OR octet_length(a.value #>> '{}') > 256 OR a.value #>> '{}' ~ '[\x01-\x1f\x7f-\x9f]') THEN
        RAISE EXCEPTION 'actor: type, id and name must be texts of at most 256 bytes without control characters'
            USING ERRCODE = 'check_violation';
    END IF;
END
$$;
-- +goose StatementEnd

-- Writes one event in the caller's transaction and answers its id, and whether it is new (false: the
-- dedupe key was used before with the same content, and id is the first event's). Other content under a
-- used key raises PH001; take a savepoint before the call to go on after that. An event_id that was used before is not
-- noticed, unless a dedupe key comes with it.
-- +goose StatementBegin
CREATE FUNCTION outbox_emit(
    event_type text, aggregate_type text, aggregate_id text, data json,
    version integer DEFAULT 1, namespace text DEFAULT 'default', tenant_id text DEFAULT NULL,
    dedupe_key text DEFAULT NULL, actor json DEFAULT NULL, headers json DEFAULT NULL,
    occurred_at timestamptz DEFAULT NULL, event_id uuid DEFAULT NULL,
    OUT id uuid, OUT created boolean
) LANGUAGE plpgsql AS $$
DECLARE
    envelope text;
    outcome  text;
BEGIN
    id := coalesce(event_id, outbox_uuid7());
    IF version < 1 OR version IS NULL THEN
        RAISE EXCEPTION 'version: % is not a positive number', coalesce(version::text, 'NULL')
            USING ERRCODE = 'check_violation';
    END IF;
    PERFORM outbox_check_actor(actor);
    PERFORM outbox_check_headers(headers);
    IF occurred_at < '0001-01-01 00:00:00+00' OR occurred_at >= '10000-01-01 00:00:00+00' THEN
        RAISE EXCEPTION 'occurred_at: the year is not between 1 and 9999' USING ERRCODE = 'check_violation';
    END IF;
    envelope := '{"version":' || version || ',"eventId":"' || id || '","occurredAt":"'
        || to_char(coalesce(occurred_at, clock_timestamp()) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || '"'
        || coalesce(',"actor":' || actor::text, '') || ',"data":' || data::text || '}';
    IF octet_length(envelope) > 1048576 THEN
        RAISE EXCEPTION 'data: the stored payload would be % bytes, the limit is 1048576', octet_length(envelope)
            USING ERRCODE = 'check_violation';
    END IF;
    PERFORM outbox_check_data(data); -- after the size, because it walks the whole document
    PERFORM outbox_check_event(id, namespace, event_type, aggregate_type, aggregate_id, tenant_id, dedupe_key,
        envelope::json, headers);
    IF dedupe_key IS NULL THEN
        INSERT INTO outbox_events (lane, id, namespace, event_type, aggregate_type, aggregate_id, tenant_id,
            payload_json, headers)
        VALUES (outbox_lane(outbox_emit.namespace, outbox_emit.aggregate_type, outbox_emit.aggregate_id),
                outbox_emit.id, outbox_emit.namespace, outbox_emit.event_type, outbox_emit.aggregate_type,
                outbox_emit.aggregate_id, outbox_emit.tenant_id, envelope::json, outbox_emit.headers);
        created := true;
        RETURN;
    END IF;
    outcome := outbox_emit_deduped(
        ARRAY[id], ARRAY[namespace], ARRAY[event_type], ARRAY[aggregate_type], ARRAY[aggregate_id],
        ARRAY[tenant_id], ARRAY[dedupe_key],
        -- concat: of a name that is missing there is a hash as well, so that its own column says so.
        ARRAY[sha256(convert_to(concat(aggregate_type, E'\n', aggregate_id, E'\n', data::text), 'UTF8'))],
        ARRAY[false], ARRAY[envelope], ARRAY[headers::text]);
    IF starts_with(outcome, '!') THEN
        RAISE EXCEPTION 'dedupe_key: the key was used before with other content, by event %', substr(outcome, 2)
            USING ERRCODE = 'PH001',
                  HINT = 'The same key must always carry the same data, aggregate type and aggregate id.';
    END IF;
    id := substr(outcome, 2)::uuid;
    created := starts_with(outcome, '+');
END
$$;
-- +goose StatementEnd

-- Wakes the relays that listen, so that they need not wait for their next poll. Call it after the commit,
-- as a statement of its own: a notification inside a transaction makes its commit wait for every other
-- commit that notifies. Calls in one transaction count once; the relays need none of them to be correct.
-- The message is the schema's name, because all outboxes of a database share the channel.
-- +goose StatementBegin
CREATE FUNCTION outbox_wake() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('posthaste', (SELECT n.nspname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.oid = 'outbox_events'::regclass));
END
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION outbox_wake() IS 'Wakes the relays. To be called after the commit, in a transaction of its own.';

SELECT outbox_seal();
UPDATE outbox_meta SET schema_version = 2;

-- +goose Down
DROP FUNCTION outbox_wake();
DROP FUNCTION outbox_emit(text, text, text, json, integer, text, text, text, json, json, timestamptz, uuid);
DROP FUNCTION outbox_check_actor(json);
DROP FUNCTION outbox_check_headers(json);
DROP FUNCTION outbox_check_data(json);
DROP FUNCTION outbox_emit_all_or_none(uuid[], text[], text[], text[], text[], text[], text[], bytea[], boolean[],
    text[], text[]);
DROP FUNCTION outbox_emit_deduped(uuid[], text[], text[], text[], text[], text[], text[], bytea[], boolean[], text[],
    text[]);
DROP FUNCTION outbox_uuid7();
DROP TABLE outbox_dedupe;
DROP DOMAIN outbox_hash;
DROP DOMAIN outbox_key;
DROP TRIGGER outbox_events_fill_lane ON outbox_events;
DROP FUNCTION outbox_fill_lane();
DROP FUNCTION outbox_check_event(uuid, text, text, text, text, text, text, json, json);
UPDATE outbox_meta SET schema_version = 1;
