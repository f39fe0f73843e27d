-- What went wrong with an event, and what each topic carried minute by minute: so that people need not have watched.
-- outbox_grant (00012) has who may use it.

-- +goose Up

-- One row for each publish that failed or whose outcome nobody knows, and that had the event counted or delayed:
-- written by that settle. While a topic is paused its events are not sent, and have no rows. Of each event the first 5
-- and the last 15 are kept. It goes with its event.
CREATE TABLE outbox_attempts (
    event_id uuid        NOT NULL,
    number   integer     NOT NULL, -- the first is 1; a redrive goes on counting
    at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    relay    uuid        NOT NULL,
    class    text COLLATE "C" NOT NULL
        CONSTRAINT outbox_attempts_class CHECK (class IN ('rejected', 'terminal', 'topic_fault', 'unknown')),
    topic    text COLLATE "C" NOT NULL,
    error    text COLLATE "C" NOT NULL CONSTRAINT outbox_attempts_error CHECK (length(error) <= 2048),
    CONSTRAINT outbox_attempts_pkey PRIMARY KEY (event_id, number)
);
COMMENT ON TABLE outbox_attempts IS 'Publishes that failed, of each event the first 5 and the last 15: when, by which '
    'relay, whose fault it was, and what the broker said.';

-- What a relay did for a topic in a minute, by the relay's clock: written when the minute is over, and only if
-- something happened in it or something waited. Of several relays counts are added, and of pending and oldest the
-- largest counts: each relay sees all that waits. Rows are deleted after 72 hours.
CREATE TABLE outbox_minutes (
    minute      timestamptz NOT NULL,
    topic       text COLLATE "C" NOT NULL,
    relay       uuid        NOT NULL, -- of one run; not the id of outbox_relays, which changes with every lost lease
    arrived     bigint      NOT NULL, -- events that were read for the first time
    published   bigint      NOT NULL,
    rejected    bigint      NOT NULL, -- attempts that failed, by their class
    terminal    bigint      NOT NULL,
    topic_fault bigint      NOT NULL,
    unknown     bigint      NOT NULL,
    died        bigint      NOT NULL, -- events
    -- Of the published, the time from created_at until they were settled: up to 5, 10, 25, 50, 100, 250 and 500 ms,
    -- 1, 2.5, 5, 10 and 30 s, 1, 5 and 30 min, and longer.
    latencies   bigint[]    NOT NULL CONSTRAINT outbox_minutes_latencies CHECK (cardinality(latencies) = 16),
    pending     bigint,               -- not published and not dead at the end of the minute; an estimate, null: unknown
    oldest      double precision,     -- the age of the oldest of these, in seconds
    CONSTRAINT outbox_minutes_pkey PRIMARY KEY (minute, topic, relay)
);
COMMENT ON TABLE outbox_minutes IS 'What each relay did for each topic, minute by minute, for 72 hours. Nothing while '
    'nothing happens.';

UPDATE outbox_meta SET schema_version = 8;

-- +goose Down
DROP TABLE outbox_minutes;
DROP TABLE outbox_attempts;
UPDATE outbox_meta SET schema_version = 7;
