-- Emit events with psql and nothing but SQL. Run it as a superuser: step 6 makes a role and takes it back.
--
--   psql -X -v schema=public -f examples/sql/emit.sql "$DATABASE_URL"
--
-- Prints one line, and the SQLSTATE of three expected errors; fails if anything differs from what the
-- comments say. The same through PgBouncer in transaction mode: psql prepares nothing, and all names are
-- qualified, because a pooler does not keep search_path for a client.
\set ON_ERROR_STOP on
\set QUIET on
\set VERBOSITY sqlstate
\pset tuples_only on
\pset format unaligned
\if :{?schema}
\else
    \set schema public
\endif
SELECT gen_random_uuid() AS run \gset

-- Spaces, escapes and an order of keys that must all survive: that is why data is json and not jsonb.
-- (psql takes one backslash of each pair in \set; SQL itself takes none.)
\set data '{"total": 12.50,  "currency":"EUR","zeta":1, "alpha":2, "note":"Grüße, 世界 🚀 \\"[1:2]\\" \\u00e9"}'

CREATE TABLE IF NOT EXISTS :"schema".example_orders (id text PRIMARY KEY);

-- 1. The order and its event commit together. What follows data is given by name.
BEGIN;
INSERT INTO :"schema".example_orders (id) VALUES (:'run' || '-1');
SELECT id AS first_id, created::int AS emitted
    FROM :"schema".outbox_emit('order_created', 'order', :'run' || '-1', :'data',
         actor => '{"type":"user","id":"7","name":"Zoë"}',
    headers => '{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}') \gset
COMMIT;

-- 2. A rollback leaves neither.
BEGIN;
INSERT INTO :"schema".example_orders (id) VALUES (:'run' || '-rolled-back');
SELECT id AS rolled_back_id
  FROM :"schema".outbox_emit('order_created', 'order', :'run' || '-rolled-back', :'data') \gset
ROLLBACK;

-- 3. A dedupe key makes a second try harmless: created is false, and id is that of the first event.
BEGIN;
INSERT INTO :"schema".example_orders (id) VALUES (:'run' || '-2');
SELECT id AS keyed_id, :emitted + created::int AS emitted
    FROM :"schema".outbox_emit('order_created', 'order', :'run' || '-2', :'data', dedupe_key => :'run' || '/2') \gset
COMMIT;
SELECT (id = :'keyed_id' AND NOT created)::int AS deduped
    FROM :"schema".outbox_emit('order_created', 'order', :'run' || '-2', :'data', dedupe_key => :'run' || '/2') \gset
\connect
-- On another connection as well.
SELECT :deduped + (id = :'keyed_id' AND NOT created)::int AS deduped
    FROM :"schema".outbox_emit('order_created', 'order', :'run' || '-2', :'data', dedupe_key => :'run' || '/2') \gset

-- 4. Other content under a used key is rejected with PH001. The error ends the transaction, unless a
--    savepoint stands before the call.
BEGIN;
INSERT INTO :"schema".example_orders (id) VALUES (:'run' || '-3');
SAVEPOINT before_emit;
\set ON_ERROR_STOP off
SELECT FROM :"schema".outbox_emit('order_created', 'order', :'run' || '-2', '{"total": '
    '13}', dedupe_key => :'run' || '/2');
\set error_codes :SQLSTATE
\set ON_ERROR_STOP on
ROLLBACK TO SAVEPOINT before_emit;

-- 5. With a tenant the key must begin with the tenant's id and '/'; the key of another is rejected.
\set ON_ERROR_STOP off
SELECT FROM :"schema".outbox_emit('order_created', 'order', :'run' || '-3', :'data',
    tenant_id => 'acme', dedupe_key => 'umbrella/' || :'run' || '/3');
\set error_codes :error_codes ' ' :SQLSTATE
\set ON_ERROR_STOP on
ROLLBACK TO SAVEPOINT before_emit;
SELECT :emitted + created::int AS emitted FROM :"schema".outbox_emit('order_created', 'order', :'run' || '-3', :'data',
    tenant_id => 'acme', dedupe_key => 'acme/' || :'run' || '/3') \gset
COMMIT;

-- 6. A role of your application needs one call, made once. It can emit, and it cannot read events.
BEGIN;
\set role example_producer_ :run
CREATE ROLE :"role";
SELECT :"schema".outbox_grant('producer', :'role') \gset
SET LOCAL ROLE :"role";
SELECT created::int AS producer_emitted FROM :"schema".outbox_emit('order_created', 'order', :'run' || '-4', :'data',
    dedupe_key => :'run' || '/4') \gset
\set ON_ERROR_STOP off
SELECT FROM :"schema".outbox_events;
\set error_codes :error_codes ' ' :SQLSTATE
\set ON_ERROR_STOP on
ROLLBACK;

-- What is stored: the envelope, and in it the data as it was sent.
SELECT :emitted = 3 AND :deduped = 2 AND :'error_codes' = 'PH001 23514 42501' AND :producer_emitted = 1 AND identical
       AND (SELECT count(*) FROM :"schema".outbox_events WHERE starts_with(aggregate_id, :'run')) = 3
       AND (SELECT count(*) FROM :"schema".example_orders WHERE starts_with(id, :'run')) = 3 AS as_expected,
       cardinality(string_to_array(:'error_codes', ' ')) AS rejected, identical::text AS identical
  FROM (SELECT right(payload_json::text, length(:'data') + 9) = ',"data":' || :'data' || '}' AS identical
          FROM :"schema".outbox_events WHERE id = :'first_id') AS stored \gset
\echo sql emitted=:emitted deduped=:deduped rejected=:rejected bytes_identical=:identical
\if :as_expected
\else
    \warn not as expected: error_codes=:error_codes producer_emitted=:producer_emitted
    SELECT 1 / 0;
\endif
