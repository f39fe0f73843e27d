-- Where the outbox lives, so that a relay notices a restored or copied database. outbox_grant (00012) has who
-- may use it.

-- +goose Up

-- The server that the relays last worked on. Each keeps seen_at fresh, and none writes here while it finds
-- itself elsewhere: then a recent seen_at tells a failover from a restore.
CREATE TABLE outbox_identity (
    singleton         boolean     PRIMARY KEY DEFAULT true CHECK (singleton),
    timeline          integer     NOT NULL, -- every promotion and every restore begins a new one
    system_identifier bigint      NOT NULL, -- drawn when the cluster was made; its standbys and backups share it
    since             timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at           timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);
COMMENT ON TABLE outbox_identity IS 'One row: the cluster and timeline that the relays work on, since when, and when '
    'one was last there. None: no relay has been here yet.';

UPDATE outbox_meta SET schema_version = 5;

-- +goose Down
DROP TABLE outbox_identity;
UPDATE outbox_meta SET schema_version = 4;
