-- Optional: lets PostgreSQL hold producers to their tenant. Not a migration; run it in the schema of the
-- outbox, as its owner, where several tenants share one database:
--
--   SELECT outbox_isolate_tenants('app');   -- for every role that emits
--   BEGIN;
--   SET LOCAL outbox.tenant_id = 'acme';    -- in every transaction; it ends with it, also behind a pooler
--   ... business change and emit ...
--   COMMIT;
--
-- From then on the role can write, and deduplicate against, events of that tenant only. An event of
-- another tenant or of none fails with SQLSTATE 42501, and so does every event where the setting is
-- missing. Other roles (relay, janitor, viewer, operator) and the owner are not bound by it.

CREATE FUNCTION outbox_isolate_tenants(role name) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    -- An ended SET LOCAL leaves '' behind, and '' is how outbox_dedupe writes "no tenant".
    own     CONSTANT text := 'tenant_id = nullif(current_setting(''outbox.tenant_id'', true), '''')';
    bound   text;
BEGIN
    FOREACH bound IN ARRAY ARRAY['outbox_events', 'outbox_dedupe'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', bound);
        -- Without a permissive policy nobody but the owner would see a row any more, the relay included.
        IF NOT EXISTS (SELECT FROM pg_policy WHERE polrelid = bound::regclass AND polname = 'outbox_everybody') THEN
            EXECUTE format('CREATE POLICY outbox_everybody ON %I USING (true) WITH CHECK (true)', bound);
        END IF;
        EXECUTE format('DROP POLICY IF EXISTS %I ON %I', 'outbox_tenant_' || role, bound);
        EXECUTE format('CREATE POLICY %I ON %I AS RESTRICTIVE TO %I USING (%s) WITH CHECK (%s)', 'outbox_tenant_' || role, bound, role, own, own);
    END LOOP;
END
$$;
REVOKE EXECUTE ON FUNCTION outbox_isolate_tenants(name) FROM PUBLIC;
