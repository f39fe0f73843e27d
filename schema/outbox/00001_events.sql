-- The outbox itself: one row an event, written by the producer in its own transaction.
--
-- Nothing in these files names a schema: they install into the first schema of search_path, so the
-- same file serves goose, psql and our own migrator. What runs later (function bodies, index
-- expressions) is bound to that schema when it is created.

-- +goose Up

-- What every part of the system must agree on, whichever tool applied the migrations.
CREATE TABLE outbox_meta (
    singleton      boolean     PRIMARY KEY DEFAULT true CHECK (singleton),
    schema_version integer     NOT NULL,
    lane_layout    smallint    NOT NULL DEFAULT 1,
    installation   uuid        NOT NULL DEFAULT gen_random_uuid(),
    installed_at   timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE outbox_meta IS 'One row: the schema''s version, the lane layout in force, and an id that tells this outbox from any other.';
INSERT INTO outbox_meta (schema_version) VALUES (1);

-- The lane of an aggregate, layout 1: 64 lanes. A function and not a column, so that producers need
-- not know that lanes exist; IMMUTABLE with a bound body, so that it is inlined into index and query.
CREATE FUNCTION outbox_lane(namespace text, aggregate_type text, aggregate_id text) RETURNS smallint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (pg_catalog.hashtextextended(namespace || '/' || aggregate_type || '/' || aggregate_id, 0) & 63)::smallint;

-- Columns of fixed width come first, so that a row carries no padding.
CREATE TABLE outbox_events (
    -- The order of events. Drawn before the commit, so a lower number may become visible later: the
    -- relay reads behind a watermark. CACHE 1, or sessions would draw blocks and break the order.
    seq             bigint      NOT NULL GENERATED ALWAYS AS IDENTITY (CACHE 1),
    id              uuid        NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    published_at    timestamptz,
    next_attempt_at timestamptz, -- null: due now
    attempt_count   integer     NOT NULL DEFAULT 0,
    state           smallint    NOT NULL DEFAULT 0,
    namespace       text        NOT NULL DEFAULT 'default',
    event_type      text        NOT NULL,
    aggregate_type  text        NOT NULL,
    aggregate_id    text        NOT NULL,
    tenant_id       text,
    dedupe_key      text,
    -- json and not jsonb: what was written is what is published, byte for byte.
    payload_json    json        NOT NULL,
    headers         json,
    last_error      text,
    CONSTRAINT outbox_events_pkey PRIMARY KEY (id),
    CONSTRAINT outbox_events_id_is_uuid_v7 CHECK (get_byte(uuid_send(id), 6) >> 4 = 7),
    CONSTRAINT outbox_events_namespace CHECK (length(namespace) <= 128 AND namespace ~ '^[A-Za-z0-9][A-Za-z0-9._-]*$'),
    CONSTRAINT outbox_events_event_type CHECK (length(event_type) <= 128 AND event_type ~ '^[A-Za-z0-9][A-Za-z0-9._-]*$'),
    CONSTRAINT outbox_events_aggregate_type CHECK (length(aggregate_type) <= 128 AND aggregate_type ~ '^[A-Za-z0-9][A-Za-z0-9._-]*$'),
    CONSTRAINT outbox_events_aggregate_id CHECK (octet_length(aggregate_id) BETWEEN 1 AND 512 AND aggregate_id !~ '[\x01-\x1f\x7f-\x9f]'),
    CONSTRAINT outbox_events_tenant_id CHECK (octet_length(tenant_id) BETWEEN 1 AND 128 AND tenant_id !~ '[\x01-\x1f\x7f-\x9f]'),
    CONSTRAINT outbox_events_dedupe_key CHECK (octet_length(dedupe_key) BETWEEN 1 AND 512 AND dedupe_key !~ '[\x01-\x1f\x7f-\x9f]'),
    -- A key that names another tenant would let one tenant swallow the event of another. A tenant that
    -- is a UUID may stand in its key with or without hyphens.
    CONSTRAINT outbox_events_tenant_owns_key CHECK (tenant_id IS NULL OR dedupe_key IS NULL
        OR starts_with(dedupe_key, tenant_id || '/')
        OR (lower(replace(tenant_id, '-', '')) ~ '^[0-9a-f]{32}$'
            AND strpos(dedupe_key, '/') > 0
            AND lower(replace(split_part(dedupe_key, '/', 1), '-', '')) = lower(replace(tenant_id, '-', '')))),
    CONSTRAINT outbox_events_payload_size CHECK (octet_length(payload_json::text) <= 9437184),
    -- Reading a key walks the whole document, so this also refuses \u0000 and broken surrogates, which
    -- json stores but cannot read back. Without IS NOT NULL a missing eventId would pass as unknown.
    CONSTRAINT outbox_events_payload_is_envelope CHECK (json_typeof(payload_json) = 'object'
        AND payload_json ->> 'eventId' IS NOT NULL AND payload_json ->> 'eventId' = id::text),
    CONSTRAINT outbox_events_headers CHECK (octet_length(headers::text) <= 131072 AND json_typeof(headers) = 'object'),
    CONSTRAINT outbox_events_state CHECK (state BETWEEN 0 AND 7),
    CONSTRAINT outbox_events_published CHECK ((state = 6) = (published_at IS NOT NULL))
);
COMMENT ON COLUMN outbox_events.state IS '0 ready, 1 retrying, 2 parked, 3 waiting behind a held event, 4 dead and blocking its aggregate, 5 dead, 6 published, 7 discarded';

-- The only index that is read with the watermark: what a lane's holder has to publish next.
CREATE INDEX outbox_events_ready ON outbox_events (outbox_lane(namespace, aggregate_type, aggregate_id), seq) WHERE state = 0;
-- Held rows, read by aggregate; empty while all is well, so it costs nothing at emit.
CREATE INDEX outbox_events_held ON outbox_events (outbox_lane(namespace, aggregate_type, aggregate_id), namespace, aggregate_type, aggregate_id, seq)
    WHERE state IN (1, 2, 3, 4);
-- Dead and discarded rows, for people and for retention; empty in health as well.
CREATE INDEX outbox_events_dead ON outbox_events (state, seq) WHERE state IN (4, 5, 7);
-- Retention, and look-ups by time of publishing; a new row is not in it.
CREATE INDEX outbox_events_published_at ON outbox_events (published_at) WHERE published_at IS NOT NULL;
-- Look-ups by people, newest first. These two are the price of being able to ask at emit time.
CREATE INDEX outbox_events_event_type ON outbox_events (event_type, seq);
CREATE INDEX outbox_events_aggregate ON outbox_events (aggregate_type, aggregate_id, seq);

-- +goose StatementBegin
CREATE FUNCTION outbox_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% of % is refused: what was written is never changed', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation', HINT = TG_ARGV[0];
END
$$;
-- +goose StatementEnd

-- Column grants do not bind the owner; this does. It fires only when a statement names one of these
-- columns, so a settle, which names the others, does not pay for it.
CREATE TRIGGER outbox_events_append_only
    BEFORE UPDATE OF seq, id, created_at, namespace, event_type, aggregate_type, aggregate_id, tenant_id, dedupe_key, payload_json, headers
    ON outbox_events FOR EACH ROW
    EXECUTE FUNCTION outbox_refuse_change('Only state, published_at, attempt_count, last_error and next_attempt_at may change.');
CREATE TRIGGER outbox_events_keep_open
    BEFORE DELETE ON outbox_events FOR EACH ROW WHEN (OLD.state NOT IN (6, 7))
    EXECUTE FUNCTION outbox_refuse_change('Only published and discarded events may be deleted.');

-- +goose Down
DROP TABLE outbox_events;
DROP FUNCTION outbox_refuse_change();
DROP FUNCTION outbox_lane(text, text, text);
DROP TABLE outbox_meta;
