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
CREATE FUNCTION {schema}.torture_note_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO {schema}.torture_changes (event_id, before, after) VALUES (NEW.id, OLD.state, NEW.state);
    RETURN NULL;
END
$$;
CREATE TRIGGER torture_note_change AFTER UPDATE ON {schema}.outbox_events FOR EACH ROW
    EXECUTE FUNCTION {schema}.torture_note_change();

-- The row is locked while its trigger runs, so n is the order in which a lane's lease changed.
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
CREATE FUNCTION {schema}.torture_note_lease() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO {schema}.torture_leases (lane, old_owner, old_token, owner, token, lease_until)
    VALUES (NEW.lane, OLD.owner, OLD.token, NEW.owner, NEW.token, NEW.lease_until);
    RETURN NULL;
END
$$;
CREATE TRIGGER torture_note_lease AFTER UPDATE ON {schema}.outbox_lanes FOR EACH ROW
    WHEN (OLD.token IS DISTINCT FROM NEW.token OR OLD.lease_until IS DISTINCT FROM NEW.lease_until)
    EXECUTE FUNCTION {schema}.torture_note_lease();

-- A relay that leaves takes its row along.
CREATE TABLE {schema}.torture_relays (id uuid NOT NULL, name text NOT NULL);
CREATE FUNCTION {schema}.torture_note_relay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO {schema}.torture_relays (id, name) VALUES (NEW.id, NEW.name);
    RETURN NULL;
END
$$;
CREATE TRIGGER torture_note_relay AFTER INSERT ON {schema}.outbox_relays FOR EACH ROW
    EXECUTE FUNCTION {schema}.torture_note_relay();
