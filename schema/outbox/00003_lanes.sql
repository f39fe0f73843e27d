-- Who relays what: lanes are leased whole, by the relays listed here.

-- +goose Up

CREATE TABLE outbox_relays (
    id           uuid        PRIMARY KEY,
    name         text COLLATE "C" NOT NULL CHECK (length(name) BETWEEN 1 AND 256),
    version      text COLLATE "C" NOT NULL DEFAULT '' CHECK (length(version) <= 128),
    started_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    alive_until  timestamptz NOT NULL,
    -- The event types this relay can publish, so that a lane with a parked type can move to one that knows it.
    known_types  text[] COLLATE "C" NOT NULL DEFAULT '{}'
) WITH (fillfactor = 50);
COMMENT ON TABLE outbox_relays IS 'Who is alive. Each relay writes its own row and prolongs it.';

-- One row per lane. The rows change every few seconds and never per batch; the free half of each page
-- keeps those changes on it. A token is made for every acquisition and is what a settle must show.
--
-- The primary key must stay the only unique index: a settle holds FOR KEY SHARE on the row, and that
-- lets a renewal pass only while the renewal changes no column of such an index.
CREATE TABLE outbox_lanes (
    layout       smallint    NOT NULL,
    lane         smallint    NOT NULL,
    owner        uuid,
    token        uuid,
    lease_until  timestamptz,
    acquired_at  timestamptz,
    -- Every event at or below it is settled or held; a new owner starts reading here.
    floor        bigint      NOT NULL DEFAULT 0,
    -- Types parked in this lane, written by its owner.
    needs        text[] COLLATE "C" NOT NULL DEFAULT '{}',
    -- Crashes of owners while the floor stood still, and the event marked before it was sent alone.
    crash_count  integer     NOT NULL DEFAULT 0,
    marked_event uuid,
    marked_by    uuid, -- the token of the owner that marked it
    marked_count integer     NOT NULL DEFAULT 0,
    PRIMARY KEY (layout, lane),
    CONSTRAINT outbox_lanes_lease CHECK ((owner IS NULL) = (token IS NULL) AND (owner IS NULL) = (lease_until IS NULL))
) WITH (fillfactor = 50);
COMMENT ON TABLE outbox_lanes IS 'Who holds which lane and until when. A lane is a hash of the aggregate: see '
    'outbox_lane.';
COMMENT ON COLUMN outbox_lanes.token IS 'The lease itself: whoever shows it may settle. Not for people.';
INSERT INTO outbox_lanes (layout, lane) SELECT 1, generate_series(0, 63);

UPDATE outbox_meta SET schema_version = 3;

-- +goose Down
DROP TABLE outbox_lanes;
DROP TABLE outbox_relays;
UPDATE outbox_meta SET schema_version = 2;
