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
-- Both tables that say where an event stands tell what changed, as internal/torture/sql/witness.sql has it.
CREATE FUNCTION witness.note_change() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    how smallint := (SELECT h.kind FROM public.outbox_held h WHERE h.lane = NEW.lane AND h.seq = NEW.seq);
BEGIN
    PERFORM pg_advisory_xact_lock_shared(816); -- the gate of settles, see below
    IF OLD.state <> 1 THEN
        INSERT INTO witness.changes (id, before, after)
        VALUES (NEW.id, OLD.state, CASE WHEN NEW.state = 1 THEN coalesce(how, 1) ELSE NEW.state END);
    ELSIF NEW.state <> 1 AND how IS NOT NULL THEN
        INSERT INTO witness.changes (id, before, after) VALUES (NEW.id, how, NEW.state);
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER witness_note_change AFTER UPDATE ON public.outbox_events FOR EACH ROW
    EXECUTE FUNCTION witness.note_change();
CREATE FUNCTION witness.note_held() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    event record;
BEGIN
    SELECT e.id, e.state INTO event FROM public.outbox_events e
     WHERE e.lane = coalesce(NEW.lane, OLD.lane) AND e.seq = coalesce(NEW.seq, OLD.seq);
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF TG_OP = 'UPDATE' THEN
        INSERT INTO witness.changes (id, before, after) VALUES (event.id, OLD.kind, NEW.kind);
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO witness.changes (id, before, after)
        VALUES (event.id, OLD.kind, CASE WHEN event.state = 1 THEN 8 ELSE event.state END);
    ELSIF event.state <> 1 THEN
        INSERT INTO witness.changes (id, before, after) VALUES (event.id, event.state, NEW.kind);
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER witness_note_held AFTER INSERT OR UPDATE OR DELETE ON public.outbox_held FOR EACH ROW
    EXECUTE FUNCTION witness.note_held();

-- The leases of lanes, as internal/torture/sql/witness.sql notes them.
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
-- What others take from a relay that they find dead was not given back.
CREATE FUNCTION witness.note_lane() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    callers text;
BEGIN
    GET DIAGNOSTICS callers = PG_CONTEXT;
    IF NEW.token IS NULL AND callers LIKE '%outbox_end_expired(%' THEN
        RETURN NULL;
    END IF;
    INSERT INTO witness.leases (lane, old_owner, old_token, owner, token, lease_until)
    VALUES (NEW.lane, OLD.owner, OLD.token, NEW.owner, NEW.token, (
        SELECT b.until FROM public.outbox_beats b WHERE b.relay = NEW.owner ORDER BY b.number DESC LIMIT 1));
    RETURN NULL;
END
$$;
CREATE TRIGGER witness_note_lane AFTER UPDATE ON public.outbox_lanes FOR EACH ROW
    WHEN (OLD.token IS DISTINCT FROM NEW.token)
    EXECUTE FUNCTION witness.note_lane();
CREATE FUNCTION witness.note_beat() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO witness.leases (lane, old_owner, old_token, owner, token, lease_until)
    SELECT l.lane, l.owner, l.token, l.owner, l.token, NEW.until FROM public.outbox_lanes l WHERE l.owner = NEW.relay;
    RETURN NULL;
END
$$;
CREATE TRIGGER witness_note_beat AFTER INSERT ON public.outbox_beats FOR EACH ROW
    EXECUTE FUNCTION witness.note_beat();

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

-- Who wrote which notice: a worker is its connections' application name, another one in each of its lives.
CREATE TABLE witness.notices (event uuid NOT NULL, writer text NOT NULL);
CREATE FUNCTION witness.note_notice() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO witness.notices VALUES (NEW.event_id, current_setting('application_name'));
    RETURN NULL;
END
$$;
CREATE TRIGGER witness_note_notice AFTER INSERT ON public.notifications FOR EACH ROW
    EXECUTE FUNCTION witness.note_notice();
