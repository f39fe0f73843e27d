-- Who may do what.

-- +goose Up

-- Gives a database role the least that one part needs; outbox_grant is the same for the outbox. Run it again after a
-- migration that adds tables.
--   SELECT inbox_grant('consumer', 'app');
-- +goose StatementBegin
CREATE FUNCTION inbox_grant(part text, role name) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    own_schema CONSTANT regnamespace := (SELECT relnamespace FROM pg_class WHERE oid = 'inbox_handled'::regclass);
    grants     text[];
    item       text;
BEGIN
    CASE part
    WHEN 'consumer' THEN grants := ARRAY[
        'SELECT ON inbox_meta',
        -- Neither read nor delete: what was handled stays so.
        'INSERT (consumer, event_id) ON inbox_handled',
        'SELECT, INSERT (consumer, namespace, aggregate_type, aggregate_id, seq), UPDATE (seq, applied_on) ON '
            'inbox_newest',
        'EXECUTE ON FUNCTION inbox_first, inbox_newer'];
    WHEN 'janitor' THEN grants := ARRAY[
        'SELECT ON inbox_meta',
        -- By their place: neither consumers nor aggregates are read.
        'SELECT (ctid, handled_at), DELETE ON inbox_handled',
        'SELECT (ctid, applied_on), DELETE ON inbox_newest',
        -- To lock them: whoever is at an aggregate is passed by and not waited for.
        'UPDATE (applied_on) ON inbox_newest',
        'SELECT, UPDATE ON inbox_retention',
        'EXECUTE ON FUNCTION inbox_clean'];
    WHEN 'viewer' THEN grants := ARRAY[
        'SELECT ON inbox_meta, inbox_handled, inbox_newest, inbox_retention'];
    ELSE
        RAISE EXCEPTION 'part: % is not one of consumer, janitor, viewer', part
            USING ERRCODE = 'invalid_parameter_value';
    END CASE;
    EXECUTE format('GRANT USAGE ON SCHEMA %s TO %I', own_schema, role);
    FOREACH item IN ARRAY grants LOOP
        EXECUTE format('GRANT %s TO %I', item, role);
    END LOOP;
END
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION inbox_grant(text, name) IS 'Gives a role what a part needs: consumer, janitor or viewer.';

SELECT inbox_seal();
UPDATE inbox_meta SET schema_version = 4;

-- +goose Down
DROP FUNCTION inbox_grant(text, name);
UPDATE inbox_meta SET schema_version = 3;
