-- How the topics stand, and a bell for the relays. outbox_grant (00005) has who may use them.

-- +goose Up

-- How the topics stand, as each relay sees them. A fault of a topic is written here and not on its events:
-- it is nobody's failed attempt.
CREATE TABLE outbox_topics (
    relay        uuid        NOT NULL CONSTRAINT outbox_topics_relay REFERENCES outbox_relays (id) ON DELETE CASCADE,
    paused       boolean     NOT NULL,
    changed_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    topic        text COLLATE "C" NOT NULL CONSTRAINT outbox_topics_topic CHECK (length(topic) BETWEEN 1 AND 512),
    error        text COLLATE "C" NOT NULL DEFAULT '' CONSTRAINT outbox_topics_error CHECK (length(error) <= 2048),
    PRIMARY KEY (relay, topic)
) WITH (fillfactor = 50);
COMMENT ON TABLE outbox_topics IS 'Which topics are paused for which relay, why and since when. The rows go with '
    'their relay.';

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
UPDATE outbox_meta SET schema_version = 6;

-- +goose Down
DROP FUNCTION outbox_wake();
DROP TABLE outbox_topics;
UPDATE outbox_meta SET schema_version = 5;
