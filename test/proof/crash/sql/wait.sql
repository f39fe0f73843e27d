-- Where a statement of the victim stands still until the victim is dead: $KEY$ is locked by the proof. What the
-- statement writes here is there afterwards if and only if it was committed.
CREATE TABLE {schema}.crash_passed (at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE FUNCTION {schema}.crash_wait() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_catalog.set_config('lock_timeout', '0', true);
    PERFORM pg_catalog.pg_advisory_xact_lock_shared({key});
    INSERT INTO {schema}.crash_passed DEFAULT VALUES;
    RETURN NEW;
END
$$;
-- The same at the second row that a statement changes.
CREATE FUNCTION {schema}.crash_wait_second() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    rows integer := coalesce(nullif(pg_catalog.current_setting('posthaste_crash.rows', true), '')::integer, 0) + 1;
BEGIN
    PERFORM pg_catalog.set_config('posthaste_crash.rows', rows::text, true);
    IF rows = 2 THEN
        PERFORM pg_catalog.set_config('lock_timeout', '0', true);
        PERFORM pg_catalog.pg_advisory_xact_lock_shared({key});
        INSERT INTO {schema}.crash_passed DEFAULT VALUES;
    END IF;
    RETURN NEW;
END
$$;
