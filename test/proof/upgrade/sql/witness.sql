-- Who published what, by the name that every process gives its connections: a number for each event, in order.
CREATE TABLE {schema}.upgrade_published (n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, by text NOT NULL);
CREATE FUNCTION {schema}.upgrade_note_published() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO {schema}.upgrade_published (by) VALUES (current_setting('application_name'));
    RETURN NULL;
END
$$;
CREATE TRIGGER upgrade_note_published AFTER UPDATE ON {schema}.outbox_events FOR EACH ROW
    WHEN (OLD.state <> 6 AND NEW.state = 6)
    EXECUTE FUNCTION {schema}.upgrade_note_published();

-- What consumers did, in the transaction of their marks.
CREATE TABLE {schema}.upgrade_effects (
    at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    event_id uuid NOT NULL,
    by       text NOT NULL
);
INSERT INTO {schema}.torture_things (id) SELECT 'thing-' || n FROM generate_series(0, {things} - 1) n;

-- The programs have roles of their own, and what they were granted of outbox and inbox. The witnesses are open to all.
GRANT SELECT, INSERT, UPDATE ON {schema}.upgrade_published, {schema}.upgrade_effects, {schema}.torture_things,
    {schema}.torture_done, {schema}.torture_changes, {schema}.torture_leases, {schema}.torture_relays TO PUBLIC;
