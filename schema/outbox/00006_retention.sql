-- What retention remembers, so that a clock that jumps deletes nothing. outbox_grant (00012) has who may use it.

-- +goose Up

-- One row for each kind of row that retention deletes. A process that deletes holds the row for a short while,
-- which it prolongs with every batch: of a whole fleet one works, and if it dies another goes on.
CREATE TABLE outbox_retention (
    kind        text COLLATE "C" PRIMARY KEY
        CONSTRAINT outbox_retention_kind CHECK (kind IN ('published', 'dead', 'dedupe')),
    cut_off     timestamptz, -- what was older was deleted; null: it never ran
    ran_at      timestamptz,
    deleted     bigint      NOT NULL DEFAULT 0, -- since the beginning
    halted_at   timestamptz, -- when the last run stopped, because too much would go; null: it did not stop
    halt_reason text COLLATE "C" NOT NULL DEFAULT ''
        CONSTRAINT outbox_retention_halt_reason CHECK (length(halt_reason) <= 2048),
    worker      uuid,
    work_until  timestamptz,
    -- Of events: all with a number up to this were looked at since this round began, at the low end.
    place       bigint      NOT NULL DEFAULT 0,
    round_at    timestamptz
) WITH (fillfactor = 50);
COMMENT ON TABLE outbox_retention IS 'One row for each kind of row that retention deletes: up to when it did, when it '
    'last ran, and why it deletes nothing.';
INSERT INTO outbox_retention (kind) VALUES ('published'), ('dead'), ('dedupe');

-- The numbers of events that retention has deleted, as ranges. Between the ends of a range there is no event, or was
-- none when it was last written: every number in it is that of an event that was deleted, or was never one's that
-- committed. What stays between two such numbers divides them, so there is one range more at most than there are
-- events that stay: where all are deleted in turn it is one. Whoever misses a number in outbox_events finds here
-- whether retention took it.
CREATE TABLE outbox_pruned (
    first_seq  bigint      PRIMARY KEY,
    last_seq   bigint      NOT NULL,
    events     bigint      NOT NULL, -- that were deleted there
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT outbox_pruned_range CHECK (first_seq <= last_seq AND events BETWEEN 1 AND last_seq - first_seq + 1)
) WITH (fillfactor = 50);
COMMENT ON TABLE outbox_pruned IS 'Ranges of numbers whose events retention has deleted, and how many those were.';

UPDATE outbox_meta SET schema_version = 6;

-- +goose Down
DROP TABLE outbox_pruned;
DROP TABLE outbox_retention;
UPDATE outbox_meta SET schema_version = 5;
