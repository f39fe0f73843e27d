-- Erasure: the one way in which what was written changes. outbox_grant (00012) has who may ask for it.

-- +goose Up

-- Whether this transaction is within outbox_erase. Only the owner may write that column, and outbox_erase does: a
-- setting of the session anybody could make.
CREATE FUNCTION outbox_erasing() RETURNS boolean LANGUAGE sql STABLE
    RETURN EXISTS (SELECT FROM outbox_meta m WHERE m.erasing = pg_catalog.pg_current_xact_id_if_assigned());

-- What stands in the place of an erased payload. It is no envelope, for it names no event: a relay would never publish
-- it. Headers are null then, and their hash is here as well.
CREATE FUNCTION outbox_tombstone(payload json, headers json, action uuid) RETURNS json LANGUAGE sql STABLE
    RETURN ('{"erased":{"at":"'
        || to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
        || '","action":"' || action
        || '","payloadSha256":"' || encode(sha256(convert_to(payload::text, 'UTF8')), 'hex')
        || coalesce('","headersSha256":"' || encode(sha256(convert_to(headers::text, 'UTF8')), 'hex'), '')
        || '"}}')::json;

-- Whether that is all that there is.
CREATE FUNCTION outbox_is_tombstone(payload json, headers json) RETURNS boolean LANGUAGE sql STABLE
    RETURN headers IS NULL AND payload::text ~ ('^[{]"erased":[{]"at":"[0-9TZ:.-]{27}","action":"[0-9a-f-]{36}",'
        || '"payloadSha256":"[0-9a-f]{64}"(,"headersSha256":"[0-9a-f]{64}")?[}][}]$');

-- Facts never change. Payload and headers do within an erasure. Both for a statement and not for each row: see 00001.
DROP TRIGGER outbox_events_append_only ON outbox_events;
CREATE TRIGGER outbox_events_append_only
    BEFORE UPDATE OF seq, id, created_at, lane, namespace, event_type, aggregate_type, aggregate_id, tenant_id,
        dedupe_key
    ON outbox_events
    EXECUTE FUNCTION outbox_reject_change('Only state, published_at, attempt_count and last_error may change.');
CREATE TRIGGER outbox_events_erase_only
    BEFORE UPDATE OF payload_json, headers ON outbox_events WHEN (NOT outbox_erasing())
    EXECUTE FUNCTION outbox_reject_change('Payload and headers are erased by outbox_erase, and not changed.');

DROP TRIGGER outbox_dlq_append_only ON outbox_dlq;
CREATE TRIGGER outbox_dlq_append_only
    BEFORE TRUNCATE OR UPDATE OF id, event_seq, event_id, created_at, failed_at, attempts, blocking, namespace,
        tenant_id, dedupe_key, event_type, aggregate_type, aggregate_id, topic, error_reason, error_detail
    ON outbox_dlq
    EXECUTE FUNCTION outbox_reject_change('What an operator does about a dead letter is a row in outbox_actions.');
CREATE TRIGGER outbox_dlq_erase_only
    BEFORE UPDATE OF payload_json, headers ON outbox_dlq WHEN (NOT outbox_erasing())
    EXECUTE FUNCTION outbox_reject_change('Payload and headers are erased by outbox_erase, and not changed.');

-- Erases payload and headers of events that will not be published any more, at most 10,000 of them, and of their dead
-- letters: published, discarded and dead ones, without an open request for a copy. Of an event that retention has
-- deleted the dead letters that are left. The hashes of what was there stay. Answers for each event what came of it, as
-- outbox_act does. Sent again, the action erases those events only that it has not erased: a large one comes in parts.
--   SELECT * FROM outbox_erase('ada', 'a customer asked for it', '{01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e}');
-- An id that was used again after an erasure another action erases once more: what is left is what counts.
-- An erased event is never redriven or redelivered. So this takes turns with outbox_act and outbox_redeliver at the row
-- of outbox_meta: what is finished here, nobody but they could open again, and relays change none of it.
-- States: 4 dead and blocking, 5 dead, 6 published, 7 discarded.
-- +goose StatementBegin
CREATE FUNCTION outbox_erase(actor text, reason text, events uuid[], action_id uuid DEFAULT gen_random_uuid())
RETURNS TABLE (event_id uuid, outcome text, was smallint) LANGUAGE plpgsql SECURITY DEFINER SET jit = off AS $$
BEGIN
    IF coalesce(btrim(outbox_erase.reason), '') = '' THEN
        RAISE EXCEPTION 'reason: an erasure must have one: nobody can bring back what was there'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF pg_catalog.cardinality(events) > 10000 THEN
        RAISE EXCEPTION 'events: % of them, the limit of one call is 10000', pg_catalog.cardinality(events)
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Call it again with the same action_id.';
    END IF;
    -- At any other level the statement would not see what was done while it waited for the row.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'outbox_erase needs READ COMMITTED, this transaction is %',
            upper(current_setting('transaction_isolation'))
            USING ERRCODE = 'invalid_transaction_state', HINT = 'BEGIN ISOLATION LEVEL READ COMMITTED';
    END IF;
    PERFORM set_config('idle_in_transaction_session_timeout', '10s', true);
    PERFORM outbox_done_before('erase', outbox_erase.action_id);
    UPDATE outbox_meta SET erasing = pg_current_xact_id();

    RETURN QUERY
    WITH found AS MATERIALIZED (
        SELECT e.id, e.lane, e.seq, coalesce(h.kind, e.state) AS state
          FROM outbox_events e
          LEFT JOIN LATERAL (
            SELECT h.kind FROM outbox_held h WHERE h.lane = e.lane AND h.seq = e.seq OFFSET 0) h ON true
         WHERE e.id = ANY (events)
    ), weighed AS MATERIALIZED ( -- two rows may have one id, where somebody has used it twice
        SELECT u.id, f.state, coalesce(a.actions, '{}') AS actions, coalesce(f.finished, d.is_there, false) AS finished,
               f.id IS NOT NULL OR d.is_there AS is_there, r.is_open,
               a.actions IS NOT NULL AND NOT EXISTS ( -- nothing is left, also where the id was used again since
                   SELECT FROM outbox_events e
                    WHERE e.id = u.id AND NOT outbox_is_tombstone(e.payload_json, e.headers) OFFSET 0)
               AND NOT EXISTS (
                   SELECT FROM outbox_dlq d
                    WHERE d.event_id = u.id AND NOT outbox_is_tombstone(d.payload_json, d.headers) OFFSET 0)
                   AS is_erased
          FROM (SELECT DISTINCT u.id FROM unnest(events) u(id)) u
          LEFT JOIN (SELECT f.id, max(f.state) AS state, bool_and(f.state BETWEEN 4 AND 7) AS finished
                       FROM found f GROUP BY f.id) f ON f.id = u.id
         CROSS JOIN LATERAL (SELECT EXISTS (SELECT FROM outbox_dlq d WHERE d.event_id = u.id OFFSET 0) AS is_there) d
         CROSS JOIN LATERAL (
            SELECT EXISTS (
                SELECT FROM outbox_requests r
                 WHERE r.event_id = u.id AND r.delivered_at IS NULL AND r.canceled_at IS NULL AND r.failed_at IS NULL
                OFFSET 0) AS is_open) r
         CROSS JOIN LATERAL ( -- in which it was erased
            SELECT array_agg(a.action_id) AS actions FROM outbox_actions a
             WHERE a.event_id = u.id AND a.verb = 'erase') a
    ), chosen AS MATERIALIZED (
        SELECT w.id FROM weighed w
         WHERE w.finished AND NOT w.is_open AND NOT w.is_erased AND outbox_erase.action_id <> ALL (w.actions)
    ), locked AS MATERIALIZED ( -- retention, which deletes in this order, may be at them
        SELECT e.lane, e.seq
          FROM found f JOIN outbox_events e ON e.lane = f.lane AND e.seq = f.seq
         WHERE f.id IN (SELECT c.id FROM chosen c)
         ORDER BY e.seq FOR NO KEY UPDATE OF e
    ), erased AS (
        UPDATE outbox_events e
           SET payload_json = outbox_tombstone(e.payload_json, e.headers, outbox_erase.action_id), headers = NULL
          FROM unnest(ARRAY(SELECT l.lane FROM locked l), ARRAY(SELECT l.seq FROM locked l)) AS k(lane, seq)
         WHERE e.lane = k.lane AND e.seq = k.seq AND NOT outbox_is_tombstone(e.payload_json, e.headers)
    ), letters AS (
        UPDATE outbox_dlq d
           SET payload_json = outbox_tombstone(d.payload_json, d.headers, outbox_erase.action_id), headers = NULL
          FROM unnest(ARRAY(SELECT c.id FROM chosen c)) AS k(id)
         WHERE d.event_id = k.id AND NOT outbox_is_tombstone(d.payload_json, d.headers)
    ), logged AS ( -- of no dead letter: it stays when that goes
        INSERT INTO outbox_actions (action_id, verb, event_id, actor, reason)
        SELECT outbox_erase.action_id, 'erase', c.id, outbox_erase.actor, outbox_erase.reason FROM chosen c
    )
    SELECT w.id, CASE WHEN outbox_erase.action_id = ANY (w.actions) THEN 'done before'
                      WHEN w.id IN (SELECT c.id FROM chosen c) THEN 'done'
                      WHEN w.is_there THEN 'not applicable' ELSE 'not found' END, w.state
      FROM weighed w;

    UPDATE outbox_meta SET erasing = NULL;
END
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION outbox_erase(text, text, uuid[], uuid) IS 'Replaces payload and headers of finished events and of '
    'their dead letters by the hashes of what was there. Who and why are written to outbox_actions.';

SELECT outbox_seal();
UPDATE outbox_meta SET schema_version = 11;

-- +goose Down
DROP FUNCTION outbox_erase(text, text, uuid[], uuid);
DROP TRIGGER outbox_dlq_erase_only ON outbox_dlq;
DROP TRIGGER outbox_dlq_append_only ON outbox_dlq;
CREATE TRIGGER outbox_dlq_append_only BEFORE UPDATE OR TRUNCATE ON outbox_dlq
    EXECUTE FUNCTION outbox_reject_change('What an operator does about a dead letter is a row in outbox_actions.');
DROP TRIGGER outbox_events_erase_only ON outbox_events;
DROP TRIGGER outbox_events_append_only ON outbox_events;
CREATE TRIGGER outbox_events_append_only
    BEFORE UPDATE OF seq, id, created_at, lane, namespace, event_type, aggregate_type, aggregate_id, tenant_id,
        dedupe_key, payload_json, headers
    ON outbox_events
    EXECUTE FUNCTION outbox_reject_change('Only state, published_at, attempt_count and last_error may change.');
DROP FUNCTION outbox_is_tombstone(json, json);
DROP FUNCTION outbox_tombstone(json, json, uuid);
DROP FUNCTION outbox_erasing();
UPDATE outbox_meta SET schema_version = 10;
