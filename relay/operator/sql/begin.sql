-- Begins an action: $1 its id, $2 the outbox's schema. The same action, sent twice at the same time, is done once and
-- answered twice. And of all actions on events one runs at a time: what the next one finds, no operator changes while
-- it waits for a lock (see operate.sql). So one whose client is silent must not hold up the others.
-- To compile the statement that comes would take longer than to run it.
SELECT pg_catalog.set_config('jit', 'off', true),
       pg_catalog.set_config('idle_in_transaction_session_timeout', '10s', true),
       pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended($1::text, 0)),
       pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('posthaste actions ' || $2::text, 0))
