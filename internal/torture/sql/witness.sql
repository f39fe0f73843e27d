-- What producers work on, and the witnesses: triggers that record what became of events and leases.
CREATE TABLE {schema}.torture_things (id text PRIMARY KEY, version bigint NOT NULL DEFAULT 0);
-- The business row of every transaction, for commits whose answer never came.
CREATE TABLE {schema}.torture_done (key text PRIMARY KEY);

CREATE TABLE {schema}.torture_changes (
    n        bigint GENERATED ALWAYS AS IDENTITY,
    at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    event_id uuid NOT NULL,
    before   smallint NOT NULL,
    after    smallint NOT NULL
);
-- How an event is held stands in outbox_held, so a change is told by the table that has what was before: the other one
-- is looked at for what it is now. Both triggers run at the end of the statement, when it has changed both tables.
CREATE FUNCTION {schema}.torture_note_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    how smallint := (SELECT h.kind FROM {schema}.outbox_held h WHERE h.lane = NEW.lane AND h.seq = NEW.seq);
BEGIN
    IF OLD.state <> 1 THEN
        INSERT INTO {schema}.torture_changes (event_id, before, after)
        VALUES (NEW.id, OLD.state, CASE WHEN NEW.state = 1 THEN coalesce(how, 1) ELSE NEW.state END);
    ELSIF NEW.state <> 1 AND how IS NOT NULL THEN -- it is not held, and its row is still there
        INSERT INTO {schema}.torture_changes (event_id, before, after) VALUES (NEW.id, how, NEW.state);
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER torture_note_change AFTER UPDATE ON {schema}.outbox_events FOR EACH ROW
    EXECUTE FUNCTION {schema}.torture_note_change();
-- 8 is absent: no event may go there from being held.
CREATE FUNCTION {schema}.torture_note_held() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    event record;
BEGIN
    SELECT e.id, e.state INTO event FROM {schema}.outbox_events e
     WHERE e.lane = coalesce(NEW.lane, OLD.lane) AND e.seq = coalesce(NEW.seq, OLD.seq);
    IF NOT FOUND THEN -- the final tables tell on it
        RETURN NULL;
    END IF;
    IF TG_OP = 'UPDATE' THEN
        INSERT INTO {schema}.torture_changes (event_id, before, after) VALUES (event.id, OLD.kind, NEW.kind);
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO {schema}.torture_changes (event_id, before, after)
        VALUES (event.id, OLD.kind, CASE WHEN event.state = 1 THEN 8 ELSE event.state END);
    ELSIF event.state <> 1 THEN -- held all the same
        INSERT INTO {schema}.torture_changes (event_id, before, after) VALUES (event.id, event.state, NEW.kind);
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER torture_note_held AFTER INSERT OR UPDATE OR DELETE ON {schema}.outbox_held FOR EACH ROW
    EXECUTE FUNCTION {schema}.torture_note_held();

-- The leases of lanes: who took one, whose relay has beaten since, and who gave it back. A lane's row is locked while
-- its trigger runs, and a relay's while a beat of it or the end of one of its tenures is written, so n is the order in
-- which a lane's lease changed.
CREATE TABLE {schema}.torture_leases (
    n           bigint GENERATED ALWAYS AS IDENTITY,
    at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    lane        smallint NOT NULL,
    old_owner   uuid,
    old_token   uuid,
    owner       uuid,
    token       uuid,
    lease_until timestamptz
);
-- What others take from a relay that they find dead was not given back: the lease goes on to its own end, so that one
-- which was ended too early is seen.
CREATE FUNCTION {schema}.torture_note_lane() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    callers text;
BEGIN
    GET DIAGNOSTICS callers = PG_CONTEXT;
    IF NEW.token IS NULL AND callers LIKE '%outbox_end_expired(%' THEN
        RETURN NULL;
    END IF;
    INSERT INTO {schema}.torture_leases (lane, old_owner, old_token, owner, token, lease_until)
    VALUES (NEW.lane, OLD.owner, OLD.token, NEW.owner, NEW.token, (
        SELECT b.until FROM {schema}.outbox_beats b WHERE b.relay = NEW.owner ORDER BY b.number DESC LIMIT 1));
    RETURN NULL;
END
$$;
CREATE TRIGGER torture_note_lane AFTER UPDATE ON {schema}.outbox_lanes FOR EACH ROW
    WHEN (OLD.token IS DISTINCT FROM NEW.token)
    EXECUTE FUNCTION {schema}.torture_note_lane();
CREATE FUNCTION {schema}.torture_note_beat() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO {schema}.torture_leases (lane, old_owner, old_token, owner, token, lease_until)
    SELECT l.lane, l.owner, l.token, l.owner, l.token, NEW.until FROM {schema}.outbox_lanes l WHERE l.owner = NEW.relay;
    RETURN NULL;
END
$$;
CREATE TRIGGER torture_note_beat AFTER INSERT ON {schema}.outbox_beats FOR EACH ROW
    EXECUTE FUNCTION {schema}.torture_note_beat();

-- The names stay when the relays' rows are forgotten.
CREATE TABLE {schema}.torture_relays (id uuid NOT NULL, name text NOT NULL);
CREATE FUNCTION {schema}.torture_note_relay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO {schema}.torture_relays (id, name) VALUES (NEW.id, NEW.name);
    RETURN NULL;
END
$$;
CREATE TRIGGER torture_note_relay AFTER INSERT ON {schema}.outbox_relays FOR EACH ROW
    EXECUTE FUNCTION {schema}.torture_note_relay();
