-- The witnesses: triggers that note what was emitted, and what became of events and leases. They run as whoever made
-- them, because nobody else may know of them.
CREATE SCHEMA witness;

CREATE TABLE witness.events (
    id        uuid NOT NULL,
    seq       bigint NOT NULL,
    type      text NOT NULL,
    aggregate text NOT NULL,
    payload   text NOT NULL,
    headers   text
);
CREATE FUNCTION witness.note_event() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO witness.events
        VALUES (NEW.id, NEW.seq, NEW.event_type, NEW.aggregate_type || '/' || NEW.aggregate_id, NEW.payload_json::text,
               NEW.headers::text);
    RETURN NULL;
END
$$;
CREATE TRIGGER witness_note_event AFTER INSERT ON public.outbox_events FOR EACH ROW
    EXECUTE FUNCTION witness.note_event();

CREATE TABLE witness.changes (n bigint GENERATED ALWAYS AS IDENTITY, id uuid NOT NULL, before smallint NOT NULL,
    after smallint NOT NULL);
CREATE FUNCTION witness.note_change() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(816); -- the gate of settles, see below
    INSERT INTO witness.changes (id, before, after) VALUES (NEW.id, OLD.state, NEW.state);
    RETURN NULL;
END
$$;
CREATE TRIGGER witness_note_change AFTER UPDATE ON public.outbox_events FOR EACH ROW
    EXECUTE FUNCTION witness.note_change();

-- The row is locked while its trigger runs, so n is the order in which a lane's lease changed.
CREATE TABLE witness.leases (
    n           bigint GENERATED ALWAYS AS IDENTITY,
    at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    lane        smallint NOT NULL,
    old_owner   uuid,
    old_token   uuid,
    owner       uuid,
    token       uuid,
    lease_until timestamptz
);
CREATE FUNCTION witness.note_lease() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO witness.leases (lane, old_owner, old_token, owner, token, lease_until)
    VALUES (NEW.lane, OLD.owner, OLD.token, NEW.owner, NEW.token, NEW.lease_until);
    RETURN NULL;
END
$$;
CREATE TRIGGER witness_note_lease AFTER UPDATE ON public.outbox_lanes FOR EACH ROW
    WHEN (OLD.token IS DISTINCT FROM NEW.token OR OLD.lease_until IS DISTINCT FROM NEW.lease_until)
    EXECUTE FUNCTION witness.note_lease();

-- Gates are advisory locks: whoever comes to one that the proof has closed waits there, and can be killed. 816 is in a
-- settle: what it is about is with the broker, and nobody knows. 815 is at the commit of a transaction that writes a
-- notice: the effect is done when the gate opens, and nobody knows.
CREATE FUNCTION witness.gate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(815);
    RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER witness_gate AFTER INSERT ON public.notifications DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    EXECUTE FUNCTION witness.gate();
