-- Dead letters, what operators did about them, and requests to deliver published events again.

-- +goose Up

-- A copy of what would have been published, and why it was not. An event that was redriven and died
-- again has two rows.
CREATE TABLE outbox_dlq (
    id             bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_seq      bigint      NOT NULL,
    event_id       uuid        NOT NULL,
    created_at     timestamptz NOT NULL, -- the event's
    failed_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    attempts       integer     NOT NULL,
    blocking       boolean     NOT NULL, -- whether later events of the aggregate had to wait when it died
    namespace      text COLLATE "C" NOT NULL,
    tenant_id      text COLLATE "C",
    dedupe_key     text COLLATE "C",
    event_type     text COLLATE "C" NOT NULL,
    aggregate_type text COLLATE "C" NOT NULL,
    aggregate_id   text COLLATE "C" NOT NULL,
    topic          text COLLATE "C", -- null: the type was unknown, so no topic was
    error_reason   text COLLATE "C" NOT NULL CONSTRAINT outbox_dlq_error_reason CHECK (error_reason IN (
        'max_attempts', 'unknown_event_type', 'invalid_payload', 'aggregate_mismatch', 'too_large', 'rejected',
        'crash_suspect')),
    error_detail   text COLLATE "C" NOT NULL DEFAULT ''
        CONSTRAINT outbox_dlq_error_detail CHECK (length(error_detail) <= 2048),
    payload_json   json        NOT NULL,
    headers        json
);
COMMENT ON TABLE outbox_dlq IS 'Dead letters, append-only. One is resolved when outbox_actions has a redrive, discard '
    'or reissue of it.';
CREATE INDEX outbox_dlq_event_id ON outbox_dlq (event_id);
CREATE INDEX outbox_dlq_failed_at ON outbox_dlq (failed_at, id);

-- The operators' log. It lives as long as the dead letter that it is about.
CREATE TABLE outbox_actions (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- One id for one decision of a person, however often the request is sent and however many events it names.
    action_id  uuid        NOT NULL,
    verb       text COLLATE "C" NOT NULL
        CONSTRAINT outbox_actions_verb
            CHECK (verb IN ('redrive', 'skip', 'release', 'discard', 'redeliver', 'reissue', 'pause', 'resume')),
    event_id   uuid        NOT NULL, -- of a pause and a resume: outbox_meta.installation
    dlq_id     bigint      CONSTRAINT outbox_actions_dlq REFERENCES outbox_dlq (id) ON DELETE CASCADE,
    actor      text COLLATE "C" NOT NULL CONSTRAINT outbox_actions_actor CHECK (length(actor) BETWEEN 1 AND 256),
    reason     text COLLATE "C" NOT NULL DEFAULT '' CONSTRAINT outbox_actions_reason CHECK (length(reason) <= 2048),
    acted_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    target     text COLLATE "C" CONSTRAINT outbox_actions_target CHECK (length(target) <= 600),
    CONSTRAINT outbox_actions_once UNIQUE (action_id, event_id)
);
COMMENT ON TABLE outbox_actions IS 'What operators did, append-only: who, what, to which event, and why.';
COMMENT ON COLUMN outbox_actions.target IS 'What was paused or resumed: all, restored, topic NAME, or type NAME. '
    'Null: the action is about the event.';
CREATE INDEX outbox_actions_dlq_id ON outbox_actions (dlq_id, verb);
CREATE INDEX outbox_actions_event_id ON outbox_actions (event_id);

-- A published event that shall be delivered again under the same id. The event's own row does not
-- change; the holder of its lane serves these with a rate of their own.
CREATE TABLE outbox_requests (
    id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    action_id       uuid        NOT NULL,
    event_id        uuid        NOT NULL,
    event_seq       bigint      NOT NULL,
    layout          smallint    NOT NULL,
    lane            smallint    NOT NULL,
    requested_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- How it ended: at most one of these. None: it is open.
    delivered_at    timestamptz,
    canceled_at     timestamptz,
    failed_at       timestamptz,
    next_attempt_at timestamptz, -- null: due now
    attempts        integer     NOT NULL DEFAULT 0,
    last_error      text COLLATE "C" CONSTRAINT outbox_requests_last_error CHECK (length(last_error) <= 2048),
    CONSTRAINT outbox_requests_once UNIQUE (action_id, event_id),
    CONSTRAINT outbox_requests_action FOREIGN KEY (action_id, event_id) REFERENCES outbox_actions (action_id, event_id)
        ON DELETE CASCADE,
    CONSTRAINT outbox_requests_one_end CHECK (num_nonnulls(delivered_at, canceled_at, failed_at) <= 1)
);
COMMENT ON TABLE outbox_requests IS 'Published events to deliver once more, under the same id. Open while '
    'delivered_at, canceled_at and failed_at are null.';
-- What a lane's holder has to deliver again, in the order of the events.
CREATE INDEX outbox_requests_open ON outbox_requests (layout, lane, event_seq)
    WHERE delivered_at IS NULL AND canceled_at IS NULL AND failed_at IS NULL;
-- Retention must not take an event that shall still be delivered again.
CREATE INDEX outbox_requests_event_id ON outbox_requests (event_id)
    WHERE delivered_at IS NULL AND canceled_at IS NULL AND failed_at IS NULL;

CREATE TRIGGER outbox_dlq_append_only BEFORE UPDATE OR TRUNCATE ON outbox_dlq
    EXECUTE FUNCTION outbox_reject_change('What an operator does about a dead letter is a row in outbox_actions.');
CREATE TRIGGER outbox_actions_append_only BEFORE UPDATE OR TRUNCATE ON outbox_actions
    EXECUTE FUNCTION outbox_reject_change('The log of actions is append-only.');
CREATE TRIGGER outbox_requests_append_only
    BEFORE UPDATE OF id, action_id, event_id, event_seq, layout, lane, requested_at ON outbox_requests
    EXECUTE FUNCTION outbox_reject_change('Only how the request went may change.');
CREATE TRIGGER outbox_requests_keep_open
    AFTER DELETE ON outbox_requests FOR EACH ROW
    WHEN (OLD.delivered_at IS NULL AND OLD.canceled_at IS NULL AND OLD.failed_at IS NULL)
    EXECUTE FUNCTION outbox_reject_change('The request is open: cancel it first.');

-- A skip lets the followers go and leaves the dead event where it is: that resolves nothing.
-- +goose StatementBegin
CREATE FUNCTION outbox_keep_unresolved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM outbox_actions a
                    WHERE a.dlq_id = OLD.id AND a.verb IN ('redrive', 'discard', 'reissue')) THEN
        RAISE EXCEPTION 'DELETE of outbox_dlq is refused: dead letter % is not resolved', OLD.id
            USING ERRCODE = 'restrict_violation', HINT = 'Redrive, discard or reissue it first.';
    END IF;
    RETURN OLD;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER outbox_dlq_keep_unresolved BEFORE DELETE ON outbox_dlq
    FOR EACH ROW EXECUTE FUNCTION outbox_keep_unresolved();

-- Without the action its dead letter would be unresolved again. When the dead letter goes first, the
-- foreign key takes its actions along.
-- +goose StatementBegin
CREATE FUNCTION outbox_keep_resolution() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM outbox_dlq d WHERE d.id = OLD.dlq_id) THEN
        RAISE EXCEPTION 'DELETE of outbox_actions is refused: dead letter % is still there', OLD.dlq_id
            USING ERRCODE = 'restrict_violation', HINT = 'The actions go with their dead letter.';
    END IF;
    RETURN OLD;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER outbox_actions_keep_resolution BEFORE DELETE ON outbox_actions
    FOR EACH ROW EXECUTE FUNCTION outbox_keep_resolution();

SELECT outbox_seal();
UPDATE outbox_meta SET schema_version = 4;

-- +goose Down
DROP TABLE outbox_requests;
DROP TABLE outbox_actions;
DROP TABLE outbox_dlq;
DROP FUNCTION outbox_keep_resolution();
DROP FUNCTION outbox_keep_unresolved();
UPDATE outbox_meta SET schema_version = 3;
