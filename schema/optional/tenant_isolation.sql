-- Optional: lets PostgreSQL hold producers to their tenant. Not a migration; run it in the schema of the
-- outbox, as its owner, where several tenants share one database. There are two ways.
--
-- A role that belongs to one tenant can write its events only, whatever it says:
--
--   SELECT outbox_isolate_tenants('acme_app', 'acme');   -- for every role that emits
--
-- PostgreSQL goes by current_user: the role must not be able to become one that is bound to another tenant, or to none.
--
-- A role that serves all tenants is bound to what it says in the transaction. That catches an application's mistakes.
-- Whoever can send SQL of their own says what they like:
--
--   SELECT outbox_isolate_tenants('app');
--   BEGIN;
--   SET LOCAL outbox.tenant_id = 'acme';    -- in every transaction; it ends with it, also behind a pooler
--   ... business change and emit ...
--   COMMIT;
--
-- From then on the role can write, and deduplicate against, events of that tenant only. An event of
-- another tenant or of none fails with SQLSTATE 42501, and so does every event where the setting is
-- missing. If the role may read events as well, it sees those of the tenant, and what holds those back. Other roles
-- (relay, janitor, viewer, operator) are not bound by it.
--
-- PostgreSQL asks no policy of superusers, of roles with BYPASSRLS and of the owner of the tables. A role that is one
-- of these, or can become one by SET ROLE, would not be bound: the call fails with SQLSTATE 55000 and says why.
--
-- The policies are named by the role's oid. A role's name may have 63 bytes and a policy's no more, so a name made of
-- the role's would be cut, and two roles that begin alike would share it. What has such a name and was not made here is
-- left as it is, and the call fails with SQLSTATE 42710. Called again for a role, what it is bound to is replaced.

CREATE FUNCTION outbox_isolate_tenants(role name, tenant text DEFAULT NULL) RETURNS void LANGUAGE plpgsql
    SET search_path FROM CURRENT AS $$
DECLARE
    -- An ended SET LOCAL leaves '' behind, and '' is how outbox_dedupe writes "no tenant".
    own      CONSTANT text := 'tenant_id = '
        || coalesce(quote_literal(tenant), 'nullif(current_setting(''outbox.tenant_id'', true), '''')');
    -- A held event has no tenant of its own. Which events the role sees is decided by their own policy.
    visible  CONSTANT text := 'EXISTS (SELECT FROM outbox_events e WHERE e.lane = outbox_held.lane '
        'AND e.seq = outbox_held.seq)';
    role_oid CONSTANT oid  := (SELECT r.oid FROM pg_roles r WHERE r.rolname = role);
    policy   CONSTANT text := 'outbox_tenant_' || role_oid;
    tables   CONSTANT text[] := ARRAY['outbox_events', 'outbox_dedupe', 'outbox_held'];
    free     record;
    bound    text;
    rule     text;
    clash    name;
BEGIN
    IF role_oid IS NULL THEN
        RAISE EXCEPTION 'role "%" does not exist', role USING ERRCODE = 'undefined_object';
    END IF;
    IF tenant = '' THEN
        RAISE EXCEPTION 'tenant: it is empty, and no event has such a tenant' USING ERRCODE = 'invalid_parameter_value';
    END IF;
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
                  HINT = 'Let producers log in with a role that may only emit.';
    END IF;
    -- Operators act by functions that run as the owner, for all tenants.
    IF has_function_privilege(role_oid, 'outbox_act(text, text, text, uuid[], uuid)', 'EXECUTE') THEN
        RAISE EXCEPTION 'role "%" would not be bound: it is an operator, or has the rights of one', role
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'Let producers log in with a role that may only emit.';
    END IF;
    FOREACH bound IN ARRAY tables LOOP
        rule := CASE bound WHEN 'outbox_held' THEN visible ELSE own END;
        SELECT p.polname INTO clash FROM pg_policy p
         WHERE p.polrelid = bound::regclass
           AND (p.polname = policy AND (p.polpermissive OR p.polroles <> ARRAY[role_oid])
                OR p.polname = 'outbox_everybody'
                   AND (NOT p.polpermissive OR p.polroles <> ARRAY[0::oid] OR p.polcmd <> '*'));
        IF FOUND THEN
            RAISE EXCEPTION 'the policy % of % was not made by outbox_isolate_tenants', clash, bound
                USING ERRCODE = 'duplicate_object', HINT = 'Give it another name: ALTER POLICY ... RENAME TO ...';
        END IF;
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', bound);
        -- Without a permissive policy nobody but the owner would see a row any more, the relay included.
        IF NOT EXISTS (SELECT FROM pg_policy WHERE polrelid = bound::regclass AND polname = 'outbox_everybody') THEN
            EXECUTE format('CREATE POLICY outbox_everybody ON %I USING (true) WITH CHECK (true)', bound);
        END IF;
        EXECUTE format('DROP POLICY IF EXISTS %I ON %I', policy, bound);
        EXECUTE format('CREATE POLICY %I ON %I AS RESTRICTIVE TO %I USING (%s) WITH CHECK (%s)', policy, bound, role,
            rule, rule);
    END LOOP;
END
$$;
REVOKE EXECUTE ON FUNCTION outbox_isolate_tenants(name, text) FROM PUBLIC;
