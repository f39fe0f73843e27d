-- Who may do what.

-- +goose Up

-- Gives a database role the least that one part needs; outbox_grant is the same for the outbox. Run it again after a
-- migration that adds tables.
--   SELECT inbox_grant('consumer', 'app', '{mailer,read-model}');
--
-- A role with consumers is bound to them: under another consumer's name it can mark no event and remember no number.
-- Called again with others, these are in their place; called without, all stays as it is. A role that never had any may
-- use every name. It is row security by current_user, of which PostgreSQL does not ask superusers, roles with BYPASSRLS
-- and the owner of the tables: a role that is one of these, or can become one, is refused with SQLSTATE 55000. The
-- policies are named by the role's oid, because a name made of the role's could be cut.
-- +goose StatementBegin
CREATE FUNCTION inbox_bind(role name, consumers text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    role_oid CONSTANT oid    := (SELECT r.oid FROM pg_roles r WHERE r.rolname = role);
    policy   CONSTANT text   := 'inbox_consumer_' || role_oid;
    rule     CONSTANT text   := format('consumer = ANY (%L::text[])', consumers);
    tables   CONSTANT text[] := ARRAY['inbox_handled', 'inbox_newest'];
    free     record;
    bound    text;
BEGIN
    SELECT r.rolname AS name,
           CASE WHEN r.rolsuper THEN 'a superuser' WHEN r.rolbypassrls THEN 'a role with BYPASSRLS'
                ELSE 'the owner of ' || c.relname END AS what
      INTO free
      FROM pg_roles r LEFT JOIN pg_class c ON c.relowner = r.oid AND c.oid = ANY (tables::regclass[])
     WHERE (r.rolsuper OR r.rolbypassrls OR c.oid IS NOT NULL) AND pg_has_role(role_oid, r.oid, 'MEMBER')
     ORDER BY r.oid <> role_oid, c.relname LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'role "%" would not be bound: % %, of whom PostgreSQL asks no policy', role,
            CASE WHEN free.name = role THEN 'it is' ELSE format('it can become %I,', free.name) END, free.what
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'Let consumers log in with a role that may only consume.';
    END IF;
    -- SET ROLE would make it another one, which is not bound or is bound to others.
    SELECT r.rolname AS name INTO free FROM pg_roles r CROSS JOIN unnest(tables) t(name)
     WHERE r.oid <> role_oid AND pg_has_role(role_oid, r.oid, 'MEMBER')
       AND (has_any_column_privilege(r.oid, t.name::regclass, 'INSERT, UPDATE')
            OR has_table_privilege(r.oid, t.name::regclass, 'DELETE')) LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'role "%" would not be bound: it can become %, which writes to the inbox as well', role,
            free.name
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'Let consumers log in with a role that may only consume.';
    END IF;
    FOREACH bound IN ARRAY tables LOOP
        -- Without a permissive policy nobody but the owner would see a row any more, the janitor included.
        IF NOT EXISTS (SELECT FROM pg_policy WHERE polrelid = bound::regclass AND polname = 'inbox_everybody') THEN
            EXECUTE format('CREATE POLICY inbox_everybody ON %I USING (true) WITH CHECK (true)', bound);
        END IF;
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', bound);
        EXECUTE format('DROP POLICY IF EXISTS %I ON %I', policy, bound);
        EXECUTE format('CREATE POLICY %I ON %I AS RESTRICTIVE TO %I USING (%s) WITH CHECK (%s)', policy, bound, role,
            rule, rule);
    END LOOP;
END
$$;

CREATE FUNCTION inbox_grant(part text, role name, consumers text[] DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
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
    IF consumers IS NOT NULL AND part <> 'consumer' THEN
        RAISE EXCEPTION 'consumers: only a consumer can be bound to some, not a %', part
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA %s TO %I', own_schema, role);
    IF consumers IS NOT NULL THEN
        PERFORM inbox_bind(role, consumers);
    END IF;
    FOREACH item IN ARRAY grants LOOP
        EXECUTE format('GRANT %s TO %I', item, role);
    END LOOP;
END
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION inbox_grant(text, name, text[]) IS 'Gives a role what a part needs: consumer, janitor or viewer; '
    'and binds a consumer''s role to its consumers.';

SELECT inbox_seal();
UPDATE inbox_meta SET schema_version = 4;

-- +goose Down
DROP FUNCTION inbox_grant(text, name, text[]);
DROP FUNCTION inbox_bind(name, text[]);
UPDATE inbox_meta SET schema_version = 3;
