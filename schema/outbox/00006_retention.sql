-- What retention remembers, so that a clock that jumps deletes nothing. outbox_grant (00009) has who may use it.

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

UPDATE outbox_meta SET schema_version = 6;

-- +goose Down
DROP TABLE outbox_retention;
UPDATE outbox_meta SET schema_version = 5;
