-- Dead letters, what operators did about them, and requests to deliver published events again.

-- +goose Up

-- Append-only: a copy of what would have been published, and why it was not. An event that was
-- redriven and died again has two rows.
CREATE TABLE outbox_dlq (
    id             bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_seq      bigint      NOT NULL,
    event_id       uuid        NOT NULL,
    created_at     timestamptz NOT NULL,
    failed_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    attempts       integer     NOT NULL,
    blocking       boolean     NOT NULL,
    namespace      text        NOT NULL,
    tenant_id      text,
    dedupe_key     text,
    event_type     text        NOT NULL,
    aggregate_type text        NOT NULL,
    aggregate_id   text        NOT NULL,
    topic          text, -- null: the type was unknown, so no topic was
    error_reason   text        NOT NULL CONSTRAINT outbox_dlq_error_reason CHECK (error_reason IN (
        'max_attempts', 'unknown_event_type', 'invalid_payload', 'aggregate_mismatch', 'too_large', 'rejected', 'crash_suspect')),
    error_detail   text        NOT NULL DEFAULT '' CHECK (length(error_detail) <= 2048),
    payload_json   json        NOT NULL,
    headers        json
);
CREATE INDEX outbox_dlq_event_id ON outbox_dlq (event_id);
CREATE INDEX outbox_dlq_failed_at ON outbox_dlq (failed_at, id);

-- The operators' log. A dead letter is resolved when a row here says what became of it.
CREATE TABLE outbox_actions (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- One id for one decision of a person, however often the request is sent and however many events it names.
    action_id  uuid        NOT NULL,
    verb       text        NOT NULL CONSTRAINT outbox_actions_verb CHECK (verb IN ('redrive', 'skip', 'release', 'discard', 'redeliver', 'reissue')),
    event_id   uuid        NOT NULL,
    dlq_id     bigint      REFERENCES outbox_dlq (id) ON DELETE CASCADE,
    actor      text        NOT NULL CHECK (length(actor) BETWEEN 1 AND 256),
    reason     text        NOT NULL DEFAULT '' CHECK (length(reason) <= 2048),
    acted_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT outbox_actions_once UNIQUE (action_id, event_id)
);
CREATE INDEX outbox_actions_dlq_id ON outbox_actions (dlq_id, verb);
CREATE INDEX outbox_actions_event_id ON outbox_actions (event_id);

-- A published event that shall be delivered again under the same id. The event's own row does not
-- change; the holder of its lane serves these with a rate of their own.
CREATE TABLE outbox_requests (
    id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    action_id    uuid        NOT NULL,
    event_id     uuid        NOT NULL,
    event_seq    bigint      NOT NULL,
    layout       smallint    NOT NULL,
    lane         smallint    NOT NULL,
    requested_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    delivered_at timestamptz,
    canceled_at  timestamptz,
    attempts     integer     NOT NULL DEFAULT 0,
    last_error   text,
    CONSTRAINT outbox_requests_once UNIQUE (action_id, event_id),
    CONSTRAINT outbox_requests_action FOREIGN KEY (action_id, event_id) REFERENCES outbox_actions (action_id, event_id) ON DELETE CASCADE
);
CREATE INDEX outbox_requests_open ON outbox_requests (layout, lane, event_seq) WHERE delivered_at IS NULL AND canceled_at IS NULL;

CREATE TRIGGER outbox_dlq_append_only BEFORE UPDATE ON outbox_dlq
    FOR EACH ROW EXECUTE FUNCTION outbox_refuse_change('What an operator does about a dead letter is a row in outbox_actions.');
CREATE TRIGGER outbox_actions_append_only BEFORE UPDATE ON outbox_actions
    FOR EACH ROW EXECUTE FUNCTION outbox_refuse_change('The log of actions is append-only.');

-- A skip lets the followers go and leaves the dead event where it is: that resolves nothing.
-- +goose StatementBegin
CREATE FUNCTION outbox_keep_unresolved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM outbox_actions a WHERE a.dlq_id = OLD.id AND a.verb IN ('redrive', 'discard', 'reissue')) THEN
        RAISE EXCEPTION 'DELETE of outbox_dlq is refused: dead letter % is not resolved', OLD.id
            USING ERRCODE = 'restrict_violation', HINT = 'Redrive, discard or reissue it first.';
    END IF;
    RETURN OLD;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER outbox_dlq_keep_unresolved BEFORE DELETE ON outbox_dlq
    FOR EACH ROW EXECUTE FUNCTION outbox_keep_unresolved();

UPDATE outbox_meta SET schema_version = 4;

-- +goose Down
DROP TABLE outbox_requests;
DROP TABLE outbox_actions;
DROP TABLE outbox_dlq;
DROP FUNCTION outbox_keep_unresolved();
UPDATE outbox_meta SET schema_version = 3;
