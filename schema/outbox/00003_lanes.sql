-- Who relays what: the lease is the relay's, and lanes are held whole by relays.
--
-- Under a snapshot that is held for a day no old version of a row goes away. So what changes often is appended and read
-- from its newest end (outbox_beats), and what reads and settles look at changes only when a lane changes hands.
-- Whoever changes what a relay holds locks the relay's row first: behind that lock its lanes and their events are its
-- own.

-- +goose Up

-- One row per start of a relay. It is the fence: a settle holds FOR KEY SHARE here and asks for the lanes of its batch,
-- and whoever takes a lane away holds FOR UPDATE. The primary key must stay the only unique index: FOR KEY SHARE lets
-- an acquisition pass only while that changes no column of such an index.
CREATE TABLE outbox_relays (
    id         uuid        PRIMARY KEY, -- new at every start
    token      uuid        NOT NULL,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at   timestamptz, -- it left, or others found it dead; it never comes back under this id
    lanes      smallint[]  NOT NULL DEFAULT '{}', -- those of outbox_lanes that name it as their owner
    name       text COLLATE "C" NOT NULL CONSTRAINT outbox_relays_name CHECK (length(name) BETWEEN 1 AND 256),
    version    text COLLATE "C" NOT NULL DEFAULT '' CONSTRAINT outbox_relays_version CHECK (length(version) <= 128),
    CONSTRAINT outbox_relays_ended CHECK (ended_at IS NULL OR lanes = '{}')
) WITH (fillfactor = 50);
COMMENT ON TABLE outbox_relays IS 'One row per start of a relay, with the lanes that it holds. Until when it is alive '
    'stands in outbox_beats.';
COMMENT ON COLUMN outbox_relays.token IS 'Whoever shows it may settle what is in the lanes. Not for people.';

-- A relay says that it is alive by one more row: only the one with the highest number counts. It says as well what the
-- next owner of its lanes needs to know if it dies. A beat that was stuck in a connection has a lower number than the
-- one that was sent after it.
CREATE TABLE outbox_beats (
    relay      uuid        NOT NULL CONSTRAINT outbox_beats_relay REFERENCES outbox_relays (id) ON DELETE CASCADE,
    number     bigint      NOT NULL, -- the relay's own count
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    until      timestamptz NOT NULL, -- when the relay counts as dead
    lanes      smallint[]  NOT NULL DEFAULT '{}',
    floors     bigint[]    NOT NULL DEFAULT '{}', -- of each of lanes
    swept      bigint[]    NOT NULL DEFAULT '{}', -- of each of lanes
    recovered  boolean[]   NOT NULL DEFAULT '{}', -- of each of lanes: what killed owners before is behind
    need_lanes smallint[]  NOT NULL DEFAULT '{}', -- a lane and a type that is parked in it, one pair each
    need_types text[] COLLATE "C" NOT NULL DEFAULT '{}',
    PRIMARY KEY (relay, number)
);
COMMENT ON TABLE outbox_beats IS 'When each relay was last alive, and how far it was. The highest number of a relay '
    'counts.';

-- A lane is free because its row says so; one whose owner had no row would never be.
CREATE TRIGGER outbox_relays_keep_live
    BEFORE DELETE ON outbox_relays FOR EACH ROW WHEN (OLD.ended_at IS NULL)
    EXECUTE FUNCTION outbox_reject_change('Only relays that have ended may be deleted.');

-- What a relay can publish, so that a lane with a parked type can move to one that knows it.
CREATE TABLE outbox_known (
    relay      uuid NOT NULL CONSTRAINT outbox_known_relay REFERENCES outbox_relays (id) ON DELETE CASCADE,
    event_type text COLLATE "C" NOT NULL CONSTRAINT outbox_known_event_type CHECK (length(event_type) <= 128),
    topic      text COLLATE "C" NOT NULL CONSTRAINT outbox_known_topic CHECK (length(topic) <= 512),
    PRIMARY KEY (relay, event_type)
);
COMMENT ON TABLE outbox_known IS 'Which event types each relay knows, and their topics. Written when it starts; the '
    'rows go with their relay.';

-- How the topics stand, as each relay sees them. A fault of a topic is written here and not on its events:
-- it is nobody's failed attempt.
CREATE TABLE outbox_topics (
    relay        uuid        NOT NULL CONSTRAINT outbox_topics_relay REFERENCES outbox_relays (id) ON DELETE CASCADE,
    paused       boolean     NOT NULL,
    by_operator  boolean     NOT NULL DEFAULT false, -- else because publishing to it fails
    changed_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    topic        text COLLATE "C" NOT NULL CONSTRAINT outbox_topics_topic CHECK (length(topic) BETWEEN 1 AND 512),
    error        text COLLATE "C" NOT NULL DEFAULT '' CONSTRAINT outbox_topics_error CHECK (length(error) <= 2048),
    PRIMARY KEY (relay, topic),
    CONSTRAINT outbox_topics_by_operator CHECK (paused OR NOT by_operator)
) WITH (fillfactor = 50);
COMMENT ON TABLE outbox_topics IS 'Which topics are paused for which relay, by whom, why and since when. The rows go '
    'with their relay.';

-- One row per lane. It changes only when the lane changes hands.
CREATE TABLE outbox_lanes (
    layout      smallint    NOT NULL,
    lane        smallint    NOT NULL,
    owner       uuid, -- null: free. Nothing else makes a lane free
    token       uuid, -- of this acquisition: who gives the lane back shows it
    acquired_at timestamptz,
    -- Every event at or below it is settled or held; a new owner starts reading here.
    floor       bigint      NOT NULL DEFAULT 0,
    -- Every number at or below it was looked at once more when it was below the floor.
    swept       bigint      NOT NULL DEFAULT 0,
    -- Types parked in this lane, as its last owner knew them.
    needs       text[] COLLATE "C" NOT NULL DEFAULT '{}',
    crashed     boolean     NOT NULL DEFAULT false, -- the last owner that is gone did not give the lane back
    crash_count integer     NOT NULL DEFAULT 0,     -- so many in a row died before it recovered
    PRIMARY KEY (layout, lane),
    CONSTRAINT outbox_lanes_owner CHECK ((owner IS NULL) = (token IS NULL))
) WITH (fillfactor = 50);
COMMENT ON TABLE outbox_lanes IS 'Who holds which lane. A lane is a hash of the aggregate: see outbox_lane. '
    'outbox_lane_status has until when, and how far its owner is.';
INSERT INTO outbox_lanes (layout, lane) SELECT 1, generate_series(1, 64);

-- An event that is sent alone, because relays keep dying in its lane. The row is written before it is sent, and deleted
-- when it is settled. One that relays have died with stays until then, or until as many have outlived it.
CREATE TABLE outbox_markers (
    layout   smallint NOT NULL,
    lane     smallint NOT NULL,
    event_id uuid     NOT NULL,
    token    uuid, -- of the acquisition of the lane in which it is being sent; null: it is not
    deaths   integer  NOT NULL DEFAULT 0,
    PRIMARY KEY (layout, lane)
) WITH (fillfactor = 50);
COMMENT ON TABLE outbox_markers IS 'Which event of a lane is sent alone, and how many relays have died while they sent '
    'it. Empty while all is well.';

-- Ends relays that have not beaten for a lease, except for the caller, and frees their lanes: at most so many, and
-- returns which. No death is counted by one that was out of touch itself: others may have been as well.
--
-- The newest beat is looked at once more behind the lock, by a statement with a snapshot of its own: a beat that
-- committed after the first look would else be missed, and a relay ended that lives. A beat that comes later waits for
-- the lock, and finds out. Hence READ COMMITTED: any other level has one snapshot for all of it.
-- +goose StatementBegin
CREATE FUNCTION outbox_end_expired(caller uuid, most integer, uncounted boolean) RETURNS SETOF uuid
    LANGUAGE plpgsql AS $$
DECLARE
    candidate uuid;
    newest    outbox_beats;
    ended     integer := 0; -- those that are passed over do not count
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'outbox_end_expired needs READ COMMITTED, this transaction is %',
            upper(current_setting('transaction_isolation'))
            USING ERRCODE = 'invalid_transaction_state', HINT = 'BEGIN ISOLATION LEVEL READ COMMITTED';
    END IF;
    FOR candidate IN -- nothing is decided here
        SELECT r.id FROM outbox_relays r
         WHERE r.ended_at IS NULL AND r.id IS DISTINCT FROM caller
           AND coalesce((SELECT b.until FROM outbox_beats b WHERE b.relay = r.id ORDER BY b.number DESC LIMIT 1),
                        r.started_at) < statement_timestamp()
         ORDER BY r.id
    LOOP
        EXIT WHEN ended >= most;
        PERFORM FROM outbox_relays r WHERE r.id = candidate AND r.ended_at IS NULL FOR UPDATE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND; -- a beat, settle or acquisition of it is running
        SELECT * INTO newest FROM outbox_beats b WHERE b.relay = candidate ORDER BY b.number DESC LIMIT 1;
        CONTINUE WHEN newest.until >= clock_timestamp();

        -- Only a death with the event in flight counts against it. A relay that had sent it, and died of something
        -- else, speaks for it: at zero the marker is free for another event.
        UPDATE outbox_markers m
           SET deaths = CASE WHEN m.token = l.token THEN m.deaths + 1
                             WHEN m.token IS NULL THEN greatest(0, m.deaths - 1) ELSE m.deaths END
          FROM outbox_lanes l
         WHERE l.owner = candidate AND m.layout = l.layout AND m.lane = l.lane AND NOT uncounted;
        UPDATE outbox_lanes l
           SET owner = NULL, token = NULL, crashed = true,
               floor = greatest(l.floor, said.floor), swept = greatest(l.swept, said.swept),
               crash_count = CASE WHEN said.recovered THEN 0 ELSE l.crash_count END + (NOT uncounted)::integer,
               needs = CASE WHEN said.lane IS NULL THEN l.needs ELSE ARRAY(
                   SELECT n.type FROM unnest(newest.need_lanes, newest.need_types) n(lane, type) WHERE n.lane = l.lane)
                       END
          FROM outbox_lanes o
          LEFT JOIN unnest(newest.lanes, newest.floors, newest.swept, newest.recovered)
               said(lane, floor, swept, recovered)
            ON said.lane = o.lane
         WHERE o.owner = candidate AND l.layout = o.layout AND l.lane = o.lane;
        UPDATE outbox_relays r SET ended_at = clock_timestamp(), lanes = '{}' WHERE r.id = candidate;
        -- What is about a relay that is no more.
        DELETE FROM outbox_known k WHERE k.relay = candidate;
        DELETE FROM outbox_topics t WHERE t.relay = candidate;
        ended := ended + 1;
        RETURN NEXT candidate;
    END LOOP;
END
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION outbox_end_expired(uuid, integer, boolean) IS 'Ends relays that have not beaten for a lease, and '
    'frees their lanes.';

-- For people and for surveys: the lanes, with what their owners said last.
CREATE VIEW outbox_lane_status WITH (security_invoker = true) AS
SELECT l.layout, l.lane, l.owner, r.name AS owner_name, b.until AS lease_until, l.acquired_at,
       greatest(l.floor, s.floor) AS floor,
       CASE WHEN s.lane IS NULL THEN l.needs ELSE ARRAY(
           SELECT n.type FROM unnest(b.need_lanes, b.need_types) n(lane, type) WHERE n.lane = l.lane) END AS needs,
       CASE WHEN s.recovered THEN 0 ELSE l.crash_count END AS crash_count,
       m.event_id AS marked_event, coalesce(m.deaths, 0) AS marked_deaths
  FROM outbox_lanes l
  LEFT JOIN outbox_relays r ON r.id = l.owner
  LEFT JOIN LATERAL (SELECT * FROM outbox_beats b WHERE b.relay = r.id ORDER BY b.number DESC LIMIT 1) b ON true
  LEFT JOIN LATERAL (
    SELECT * FROM unnest(b.lanes, b.floors, b.recovered) s(lane, floor, recovered) WHERE s.lane = l.lane) s ON true
  LEFT JOIN outbox_markers m ON m.layout = l.layout AND m.lane = l.lane;
COMMENT ON VIEW outbox_lane_status IS 'Who holds which lane, until when, and how far it is.';

SELECT outbox_seal();
UPDATE outbox_meta SET schema_version = 3;

-- +goose Down
DROP VIEW outbox_lane_status;
DROP FUNCTION outbox_end_expired(uuid, integer, boolean);
DROP TABLE outbox_markers;
DROP TABLE outbox_lanes;
DROP TABLE outbox_topics;
DROP TABLE outbox_known;
DROP TABLE outbox_beats;
DROP TABLE outbox_relays;
UPDATE outbox_meta SET schema_version = 2;
