-- Optional: lets PostgreSQL refuse a dedupe key without its event. Not a migration; run it with psql in the schema of
-- the outbox, as its owner:
--
--   PGOPTIONS='-c search_path=public' psql -f keys_with_events.sql
--
-- Producers of one outbox trust each other's keys: they write into outbox_dedupe themselves. A key that one of them
-- takes without an event makes the emit that the key was meant for answer "already enqueued", with nothing to publish.
-- With this a key needs an event that carries it: there is always something to be found and published. It does not keep
-- a producer from emitting under a key that is meant for another.
--
-- Every emit with a key pays for a look at the event; that is why this is no migration. Our statements write key and
-- event at once, and this is asked when they end. The function runs as the owner: producers may not read events.
--
-- Retention deletes events before their keys: a restore of the data alone needs pg_restore --disable-triggers.
--
-- To take it back: DROP FUNCTION outbox_check_key() CASCADE;

CREATE FUNCTION outbox_check_key() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM outbox_events e
                    WHERE e.id = NEW.event_id AND e.dedupe_key = NEW.dedupe_key AND e.event_type = NEW.event_type
                      AND e.namespace = NEW.namespace AND coalesce(e.tenant_id, '') = NEW.tenant_id) THEN
        RAISE EXCEPTION 'INSERT of outbox_dedupe is refused: there is no event % with this key', NEW.event_id
            USING ERRCODE = 'restrict_violation', HINT = 'Emit the event with its key, in one statement.';
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER outbox_dedupe_has_event AFTER INSERT ON outbox_dedupe FOR EACH ROW EXECUTE FUNCTION outbox_check_key();
SELECT outbox_seal(); -- pins what the function means by its names, and takes it from PUBLIC
