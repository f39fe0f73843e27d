-- In place of the tables that the migrations have made. Only what a statement of emit, read or settle touches is here.
DROP TABLE {schema}.outbox_events, {schema}.outbox_relays CASCADE;
TRUNCATE {schema}.outbox_dedupe;

-- From 1: what sends 0 for a column that it does not know is filled in.
CREATE OR REPLACE FUNCTION {schema}.outbox_lane(namespace text, aggregate_type text, aggregate_id text) RETURNS smallint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (
        (pg_catalog.hashtextextended(namespace || '/' || aggregate_type || '/' || aggregate_id, 0) & 63) + 1)::smallint;

CREATE TABLE {schema}.outbox_events (
    seq             bigint      NOT NULL GENERATED ALWAYS AS IDENTITY (CACHE 1),
    id              uuid        NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    published_at    timestamptz,
    attempt_count   integer     NOT NULL DEFAULT 0,
    lane            smallint    NOT NULL,
    state           smallint    NOT NULL DEFAULT 0,
    namespace       text COLLATE "C" NOT NULL DEFAULT 'default',
    event_type      text COLLATE "C" NOT NULL,
    aggregate_type  text COLLATE "C" NOT NULL,
    aggregate_id    text COLLATE "C" NOT NULL,
    tenant_id       text COLLATE "C",
    dedupe_key      text COLLATE "C",
    payload_json    json        NOT NULL,
    headers         json,
    last_error      text COLLATE "C",
    PRIMARY KEY (lane, seq)
) WITH (fillfactor = 49, autovacuum_enabled = off);
CREATE INDEX outbox_events_id ON {schema}.outbox_events (id);
CREATE INDEX outbox_events_aggregate ON {schema}.outbox_events (aggregate_type, aggregate_id, seq);

-- One row per held event, which emit never sees.
CREATE TABLE {schema}.outbox_held (
    seq            bigint      NOT NULL,
    due            timestamptz,
    since          timestamptz NOT NULL,
    version        bigint      NOT NULL DEFAULT 1,
    lane           smallint    NOT NULL,
    kind           smallint    NOT NULL,
    namespace      text COLLATE "C" NOT NULL,
    aggregate_type text COLLATE "C" NOT NULL,
    aggregate_id   text COLLATE "C" NOT NULL,
    event_type     text COLLATE "C" NOT NULL,
    PRIMARY KEY (lane, seq)
);
CREATE INDEX outbox_held_line ON {schema}.outbox_held (lane, namespace, aggregate_type, aggregate_id, event_type, seq);
CREATE INDEX outbox_held_due ON {schema}.outbox_held (lane, kind, due, seq);

CREATE TABLE {schema}.outbox_relays (
    id         uuid        PRIMARY KEY,
    token      uuid        NOT NULL,
    lanes      smallint[]  NOT NULL DEFAULT '{}',
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at   timestamptz
);

CREATE FUNCTION {schema}.outbox_fill_lane() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.lane := {schema}.outbox_lane(NEW.namespace, NEW.aggregate_type, NEW.aggregate_id);
    RETURN NEW;
END
$$;
CREATE TRIGGER outbox_events_lane BEFORE INSERT ON {schema}.outbox_events FOR EACH ROW
    WHEN (NEW.lane IS NULL OR NEW.lane = 0) EXECUTE FUNCTION {schema}.outbox_fill_lane();
CREATE TRIGGER outbox_events_append_only
    BEFORE UPDATE OF seq, id, created_at, lane, namespace, event_type, aggregate_type, aggregate_id, tenant_id,
        dedupe_key, payload_json, headers
    ON {schema}.outbox_events
    EXECUTE FUNCTION {schema}.outbox_reject_change('Only what the relay says about an event may change.');
CREATE TRIGGER outbox_events_keep_open
    AFTER DELETE ON {schema}.outbox_events FOR EACH ROW WHEN (OLD.state NOT IN (6, 7))
    EXECUTE FUNCTION {schema}.outbox_reject_change('Only published and discarded events may be deleted.')
