-- What people may see, and who may do what.

-- +goose Up

-- For people with psql. Nothing is written when an event is picked up, so "processing" is the most
-- that can be known: the event is due and a live relay holds its lane. Ask by aggregate or id where the table is large,
-- or begin at outbox_held: those have indexes.
CREATE VIEW outbox_status WITH (security_invoker = true) AS
SELECT e.seq, e.id, e.namespace, e.event_type, e.aggregate_type, e.aggregate_id, e.tenant_id,
       CASE coalesce(h.kind, e.state)
           WHEN 0 THEN CASE WHEN l.lease_until > clock_timestamp() THEN 'processing' ELSE 'pending' END
           WHEN 1 THEN 'retrying' WHEN 2 THEN 'parked' WHEN 3 THEN 'blocked'
           WHEN 4 THEN 'dead' WHEN 5 THEN 'dead' WHEN 6 THEN 'published' ELSE 'discarded'
       END AS status,
       h.kind IS NOT DISTINCT FROM 4 AS blocks_aggregate,
       e.created_at, e.published_at, coalesce(h.due, e.created_at) AS due_at, h.since AS held_since, e.attempt_count,
       e.last_error, e.lane, l.owner_name AS lane_owner, l.lease_until, coalesce(h.kind, e.state) AS state
  FROM outbox_events e
  LEFT JOIN outbox_held h ON h.lane = e.lane AND h.seq = e.seq
  LEFT JOIN outbox_lane_status l ON l.lane = e.lane;
COMMENT ON VIEW outbox_status IS 'Where every event stands, in words, with the holder of its lane. Without payloads.';

-- Shows payload, headers and dedupe key of one event, and logs who has seen them: for people who may read them one by
-- one, each with a name, and not the tables. They are the event's, or those of its newest dead letter where retention
-- has deleted it. Where there is neither it answers no row, and logs nothing.
--   SELECT * FROM outbox_look('ada', 'a customer asks', '01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e');
-- The line of the log is about no dead letter: it resolves none, and stays when that goes. Of a transaction that is
-- rolled back no line is left, and somebody has seen the payload all the same: hence the one in the server's own log,
-- which no such role can turn off. Sent again soon by who has got no answer, it is the same look, and logged once; by
-- somebody else or later it is refused, or one line would stand for looks of many.
-- +goose StatementBegin
CREATE FUNCTION outbox_look(actor text, reason text, event uuid, action_id uuid DEFAULT gen_random_uuid())
RETURNS TABLE (payload_json json, headers json, dedupe_key text) LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF coalesce(btrim(outbox_look.actor), '') = '' THEN
        RAISE EXCEPTION 'actor: a look must have one: the log says who has seen a payload'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- Two rows may have one id: the first of them is meant.
    SELECT e.payload_json, e.headers, e.dedupe_key INTO payload_json, headers, dedupe_key
      FROM outbox_events e WHERE e.id = outbox_look.event ORDER BY e.seq LIMIT 1;
    IF NOT FOUND THEN
        SELECT d.payload_json, d.headers, d.dedupe_key INTO payload_json, headers, dedupe_key
          FROM (SELECT d.* FROM outbox_dlq d WHERE d.event_id = outbox_look.event OFFSET 0) d
         ORDER BY d.id DESC LIMIT 1;
        IF NOT FOUND THEN
            RETURN;
        END IF;
    END IF;
    IF outbox_done_before('look', outbox_look.action_id) AND EXISTS (
        SELECT FROM outbox_actions a
         WHERE a.action_id = outbox_look.action_id
           AND (a.actor <> outbox_look.actor OR a.session_role <> session_user
                OR a.acted_at < clock_timestamp() - interval '10 minutes')) THEN
        RAISE EXCEPTION 'the action''s id was used before, by somebody else or long ago: another look needs another id'
            USING ERRCODE = 'unique_violation';
    END IF;
    RAISE LOG 'outbox_look: the role % looks at the payload of event % (action %)', session_user, outbox_look.event,
        outbox_look.action_id;
    INSERT INTO outbox_actions (action_id, verb, event_id, actor, reason)
    VALUES (outbox_look.action_id, 'look', outbox_look.event, outbox_look.actor, coalesce(outbox_look.reason, ''))
        ON CONFLICT ON CONSTRAINT outbox_actions_once DO NOTHING;
    RETURN NEXT;
END
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION outbox_look(text, text, uuid, uuid) IS 'Shows payload, headers and dedupe key of one event. Who '
    'looked and why is written to outbox_actions.';

-- Gives a role of the outbox to a database role: the least that it needs. Database roles belong to the cluster and
-- many hosts do not let an application create them, so none is created here: name your own. One may be given several
-- roles. Run it again after a migration that adds tables.
--   SELECT outbox_grant('producer', 'app');
-- +goose StatementBegin
CREATE FUNCTION outbox_grant(role text, grantee name) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    own_schema CONSTANT regnamespace := (SELECT relnamespace FROM pg_class WHERE oid = 'outbox_events'::regclass);
    grants     text[];
    item       text;
BEGIN
    CASE role
    WHEN 'producer' THEN grants := ARRAY[
        'SELECT ON outbox_meta',
        'INSERT (lane, id, namespace, event_type, aggregate_type, aggregate_id, tenant_id, dedupe_key, '
            'payload_json, headers) ON outbox_events',
        -- A conflict on the key must be met and read.
        'INSERT (namespace, event_type, tenant_id, dedupe_key, event_id, content_hash) ON outbox_dedupe',
        'SELECT (namespace, event_type, tenant_id, dedupe_key, event_id, content_hash, repeated) ON outbox_dedupe',
        'UPDATE (repeated) ON outbox_dedupe',
        'EXECUTE ON FUNCTION outbox_emit, outbox_emit_deduped, outbox_emit_all_or_none, outbox_check_data, '
            'outbox_check_headers, outbox_check_actor, outbox_check_event, outbox_uuid7, outbox_wake'];
    WHEN 'relay' THEN grants := ARRAY[
        'SELECT ON outbox_events, outbox_held, outbox_lanes, outbox_relays, outbox_beats, outbox_known, '
            'outbox_markers, outbox_lane_status, outbox_requests, outbox_actions, outbox_meta',
        'SELECT ON SEQUENCE outbox_events_seq_seq',
        'UPDATE (state, published_at, attempt_count, last_error) ON outbox_events',
        'INSERT (lane, seq, kind, due, since, namespace, event_type, aggregate_type, aggregate_id), '
            'UPDATE (kind, due, since, version), DELETE ON outbox_held',
        -- To lock it: the layout of the lanes does not change while one is taken.
        'UPDATE (singleton) ON outbox_meta',
        'UPDATE (owner, token, acquired_at, floor, swept, needs, crashed, crash_count) ON outbox_lanes',
        'INSERT (id, token, name, version), UPDATE (lanes, ended_at), DELETE ON outbox_relays',
        'INSERT, DELETE ON outbox_beats',
        'INSERT, DELETE ON outbox_known',
        'INSERT, UPDATE (event_id, token, deaths), DELETE ON outbox_markers',
        'EXECUTE ON FUNCTION outbox_end_expired',
        'SELECT, INSERT, UPDATE, DELETE ON outbox_topics',
        'SELECT, INSERT, UPDATE ON outbox_identity',
        'SELECT ON outbox_pauses, outbox_limits',
        'SELECT (event_id, number), INSERT (event_id, number, relay, class, topic, error), DELETE ON outbox_attempts',
        'SELECT (minute, topic, relay), INSERT, DELETE ON outbox_minutes',
        'INSERT (event_seq, event_id, created_at, attempts, blocking, namespace, tenant_id, dedupe_key, event_type, '
            'aggregate_type, aggregate_id, topic, error_reason, error_detail, payload_json, headers) ON outbox_dlq',
        'SELECT (id, event_id) ON outbox_dlq',
        'UPDATE (taken_by, taken, delivered_at, failed_at, attempts, last_error) ON outbox_requests'];
    WHEN 'janitor' THEN grants := ARRAY[
        'SELECT (lane, seq, id, state, published_at, created_at) ON outbox_events',
        'SELECT (lane) ON outbox_lanes',
        'SELECT (id, event_id, failed_at) ON outbox_dlq',
        'SELECT ON outbox_actions, outbox_meta',
        'SELECT (action_id, event_id, delivered_at, canceled_at, failed_at) ON outbox_requests',
        -- By their place, because the keys themselves may be personal.
        'SELECT (ctid, event_id, created_at) ON outbox_dedupe',
        -- To lock them: whoever holds a key is passed by and not waited for.
        'UPDATE (repeated) ON outbox_dedupe',
        'SELECT, UPDATE ON outbox_retention',
        'SELECT, INSERT, UPDATE, DELETE ON outbox_pruned',
        'SELECT (event_id) ON outbox_attempts',
        -- Triggers keep what is still needed: see docs/reference/schema.md.
        'DELETE ON outbox_events, outbox_dlq, outbox_actions, outbox_requests, outbox_dedupe, outbox_attempts'];
    WHEN 'viewer' THEN grants := ARRAY[
        'SELECT ON outbox_status, outbox_held, outbox_lane_status, outbox_beats, outbox_known, outbox_topics, '
            'outbox_actions, outbox_meta, outbox_identity, outbox_retention, outbox_pauses, '
            'outbox_limits, outbox_attempts, outbox_minutes, outbox_pruned, outbox_jobs',
        'SELECT ON SEQUENCE outbox_events_seq_seq',
        'SELECT (id, name, version, started_at, ended_at, lanes) ON outbox_relays',
        'SELECT (layout, lane, owner, acquired_at, floor, swept, needs, crashed, crash_count) ON outbox_lanes',
        'SELECT (layout, lane, event_id, deaths) ON outbox_markers',
        -- Not taken_by: it is the token of a lane.
        'SELECT (id, action_id, event_id, lane, event_seq, topic, requested_at, due_at, taken, delivered_at, '
            'canceled_at, failed_at, attempts, last_error) ON outbox_requests',
        'SELECT (seq, id, created_at, published_at, attempt_count, lane, state, namespace, event_type, '
            'aggregate_type, aggregate_id, tenant_id, last_error) ON outbox_events',
        'SELECT (id, event_seq, event_id, created_at, failed_at, attempts, blocking, namespace, tenant_id, '
            'event_type, aggregate_type, aggregate_id, topic, error_reason, error_detail) ON outbox_dlq'];
    WHEN 'operator' THEN
        PERFORM outbox_grant('viewer', grantee);
        -- By functions alone, which check and log: an operator may write no table.
        grants := ARRAY['EXECUTE ON FUNCTION outbox_act, outbox_redeliver, outbox_cancel, outbox_reissue, '
            'outbox_erase, outbox_start_job, outbox_change_job, outbox_take_job, outbox_work_job, outbox_fail_job, '
            'outbox_pause, outbox_resume, outbox_limit, outbox_wake'];
    WHEN 'reader' THEN grants := ARRAY[
        -- It adds to viewer or operator. By a function alone, which logs every look.
        'EXECUTE ON FUNCTION outbox_look'];
    ELSE
        RAISE EXCEPTION 'role: % is not one of producer, relay, janitor, viewer, operator, reader', role
            USING ERRCODE = 'invalid_parameter_value';
    END CASE;
    EXECUTE format('GRANT USAGE ON SCHEMA %s TO %I', own_schema, grantee);
    FOREACH item IN ARRAY grants LOOP
        EXECUTE format('GRANT %s TO %I', item, grantee);
    END LOOP;
END
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION outbox_grant(text, name) IS 'Gives a database role what a role of the outbox needs: producer, '
    'relay, janitor, viewer, operator or reader.';

SELECT outbox_seal();
UPDATE outbox_meta SET schema_version = 12;

-- +goose Down
DROP FUNCTION outbox_grant(text, name);
DROP FUNCTION outbox_look(text, text, uuid, uuid);
DROP VIEW outbox_status;
UPDATE outbox_meta SET schema_version = 11;
