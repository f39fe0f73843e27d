-- Dead letters, and what operators did about them.

-- +goose Up

-- A copy of what would have been published, and why it was not. An event that was redriven and died
-- again has two rows.
CREATE TABLE outbox_dlq (
    id             bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_seq      bigint      NOT NULL,
    event_id       uuid        NOT NULL,
    created_at     timestamptz NOT NULL, -- the event's
    failed_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    attempts       integer     NOT NULL,
    blocking       boolean     NOT NULL, -- whether later events of the aggregate had to wait when it died
    namespace      text COLLATE "C" NOT NULL,
    tenant_id      text COLLATE "C",
    dedupe_key     text COLLATE "C",
    event_type     text COLLATE "C" NOT NULL,
    aggregate_type text COLLATE "C" NOT NULL,
    aggregate_id   text COLLATE "C" NOT NULL,
    topic          text COLLATE "C", -- null: the type was unknown, so no topic was
    error_reason   text COLLATE "C" NOT NULL CONSTRAINT outbox_dlq_error_reason CHECK (error_reason IN (
        'max_attempts', 'unknown_event_type', 'invalid_payload', 'aggregate_mismatch', 'too_large', 'rejected',
        'crash_suspect')),
    error_detail   text COLLATE "C" NOT NULL DEFAULT ''
        CONSTRAINT outbox_dlq_error_detail CHECK (length(error_detail) <= 2048),
    payload_json   json        NOT NULL,
    headers        json
);
COMMENT ON TABLE outbox_dlq IS 'Dead letters, append-only. One is resolved when outbox_actions has a redrive, discard '
    'or reissue of it.';
CREATE INDEX outbox_dlq_event_id ON outbox_dlq (event_id);
CREATE INDEX outbox_dlq_failed_at ON outbox_dlq (failed_at, id);

-- The operators' log. It lives as long as the dead letter that it is about.
CREATE TABLE outbox_actions (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- One id for one decision of a person, however often the request is sent and however many events it names.
    action_id  uuid        NOT NULL,
    verb       text COLLATE "C" NOT NULL
        CONSTRAINT outbox_actions_verb
            CHECK (verb IN ('redrive', 'skip', 'release', 'discard', 'redeliver', 'cancel', 'reissue', 'erase',
                'pause', 'resume', 'limit', 'fail', 'look')),
    event_id   uuid        NOT NULL, -- of a pause, resume, limit, cancel or fail: outbox_meta.installation
    dlq_id     bigint      CONSTRAINT outbox_actions_dlq REFERENCES outbox_dlq (id) ON DELETE CASCADE,
    actor      text COLLATE "C" NOT NULL CONSTRAINT outbox_actions_actor CHECK (length(actor) BETWEEN 1 AND 256),
    reason     text COLLATE "C" NOT NULL DEFAULT '' CONSTRAINT outbox_actions_reason CHECK (length(reason) <= 2048),
    acted_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    session_role name      NOT NULL DEFAULT session_user, -- no role may write it, so none can sign for another
    target     text COLLATE "C" CONSTRAINT outbox_actions_target CHECK (length(target) <= 600),
    CONSTRAINT outbox_actions_once UNIQUE (action_id, event_id)
);
COMMENT ON TABLE outbox_actions IS 'What operators did, append-only: who, what, to which event, and why.';
COMMENT ON COLUMN outbox_actions.actor IS 'Who decided, as the caller says.';
COMMENT ON COLUMN outbox_actions.session_role IS 'The database role that had logged in, as the server knows it.';
COMMENT ON COLUMN outbox_actions.target IS 'What was paused or resumed: all, restored, topic NAME, or type NAME; '
    'of a limit: topic NAME, and events per second or none; the action whose requests were canceled; the filter of a '
    'job, or the job; the id under which an event was issued again. Null: the action is about the event.';
CREATE INDEX outbox_actions_dlq_id ON outbox_actions (dlq_id, verb);
CREATE INDEX outbox_actions_event_id ON outbox_actions (event_id);

CREATE TRIGGER outbox_dlq_append_only BEFORE UPDATE OR TRUNCATE ON outbox_dlq
    EXECUTE FUNCTION outbox_reject_change('What an operator does about a dead letter is a row in outbox_actions.');
CREATE TRIGGER outbox_actions_append_only BEFORE UPDATE OR TRUNCATE ON outbox_actions
    EXECUTE FUNCTION outbox_reject_change('The log of actions is append-only.');
-- A skip lets the followers go and leaves the dead event where it is: that resolves nothing.
-- +goose StatementBegin
CREATE FUNCTION outbox_keep_unresolved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM outbox_actions a
                    WHERE a.dlq_id = OLD.id AND a.verb IN ('redrive', 'discard', 'reissue')) THEN
        RAISE EXCEPTION 'DELETE of outbox_dlq is refused: dead letter % is not resolved', OLD.id
            USING ERRCODE = 'restrict_violation', HINT = 'Redrive, discard or reissue it first.';
    END IF;
    RETURN OLD;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER outbox_dlq_keep_unresolved BEFORE DELETE ON outbox_dlq
    FOR EACH ROW EXECUTE FUNCTION outbox_keep_unresolved();

-- Without the action its dead letter would be unresolved again. When the dead letter goes first, the
-- foreign key takes its actions along. That an event was erased only the log says to whoever may not read payloads.
-- +goose StatementBegin
CREATE FUNCTION outbox_keep_resolution() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM outbox_dlq d WHERE d.id = OLD.dlq_id) THEN
        RAISE EXCEPTION 'DELETE of outbox_actions is refused: dead letter % is still there', OLD.dlq_id
            USING ERRCODE = 'restrict_violation', HINT = 'The actions go with their dead letter.';
    END IF;
    IF OLD.verb = 'erase' THEN
        RAISE EXCEPTION 'DELETE of outbox_actions is refused: an erasure stays in the log'
            USING ERRCODE = 'restrict_violation', HINT = 'Nothing else says what was erased.';
    END IF;
    RETURN OLD;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER outbox_actions_keep_resolution BEFORE DELETE ON outbox_actions
    FOR EACH ROW EXECUTE FUNCTION outbox_keep_resolution();

-- Begins an action: true if this same one was done before. Sent twice at the same time, it is done once and answered
-- twice. One that is about no event, or that starts a job, has a target, which must be the same.
-- +goose StatementBegin
CREATE FUNCTION outbox_done_before(this_verb text, this_action uuid, this_target text DEFAULT NULL) RETURNS boolean
    LANGUAGE plpgsql AS $$
DECLARE
    earlier text;
    target  text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(this_action::text, 0::bigint));
    SELECT a.verb, a.target INTO earlier, target
      FROM outbox_actions a JOIN outbox_meta m ON a.event_id = m.installation
     WHERE a.action_id = this_action;
    IF NOT FOUND THEN -- it was about events, or is new
        SELECT a.verb INTO earlier FROM outbox_actions a WHERE a.action_id = this_action LIMIT 1;
    END IF;
    IF earlier = this_verb AND this_target IS DISTINCT FROM target THEN
        RAISE EXCEPTION 'the action''s id was used before, for %: another decision needs another id',
            coalesce(target, 'events that were named')
            USING ERRCODE = 'unique_violation';
    END IF;
    IF earlier <> this_verb THEN
        RAISE EXCEPTION 'the action''s id was used before, for a %: another decision needs another id', earlier
            USING ERRCODE = 'unique_violation';
    END IF;
    RETURN earlier IS NOT NULL;
END
$$;
-- +goose StatementEnd

-- One decision of a person about events: a verb, at most 10,000 events, who and why. It changes an event only if that
-- still is in a state from which the verb starts, and logs it: operators have no other way to do either. Answers for
-- each event what came of it ("done", "done before" by this same action, "not applicable", "not found") and the state
-- in which it was.
--   SELECT * FROM outbox_act('ada', 'a test order', 'discard', '{01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e}');
-- Done again by the same action it changes nothing but followers that came meanwhile: an action that has changed
-- something is over, unless it comes in parts, as that of a job does. Do that after a skip and a
-- discard, in another transaction: a relay may put an event behind the block while this runs. The relay still sees the
-- block, and this does not see the event: it would wait for good.
--
-- Of all actions on events one runs at a time: what the next one finds, no operator changes while it waits for a lock.
-- They take turns at a row that only they and relays may lock, and relays lock its key alone; an advisory lock anybody
-- could hold for good. A client that is silent must not hold up the others either: hence the timeout.
--
-- Whoever changes a held event locks its row in outbox_held first, in the order of (lane, seq), and then the event. A
-- settle does so as well, so that no two wait for each other. Hence all that shall be locked is found before anything
-- is. What an event has become meanwhile, its held row says; of one that is dead and held by nobody, its own row. Of
-- what operators start from, relays change only what is parked: so no event is locked here that a settle wants.
--
-- Keys go through unnest, for which the planner expects few rows: it looks into an index for each, and reads no table
-- through. What was found, done and so on comes as rows of their own, which are grouped: PostgreSQL takes the CTEs for
-- small, and would join them row by row. To compile the statement would take longer than to run it.
-- States: 1 retrying (of the event: held), 2 parked, 3 waiting, 4 dead and blocking, 5 dead, 7 discarded.
-- +goose StatementBegin
CREATE FUNCTION outbox_decide(actor text, reason text, verb text, events uuid[], action_id uuid, in_parts boolean,
    followers_only boolean)
RETURNS TABLE (event_id uuid, outcome text, was smallint) LANGUAGE plpgsql SET jit = off AS $$
DECLARE
    starts smallint[]; -- the states that the verb starts from
    leads  smallint;   -- the one that it leads to
    over   boolean;    -- this action changes nothing any more
BEGIN
    CASE outbox_decide.verb
    WHEN 'redrive' THEN starts := '{4,5}'; leads := 1;
    WHEN 'skip'    THEN starts := '{4}';   leads := 5;
    WHEN 'release' THEN starts := '{2}';   leads := 1;
    WHEN 'discard' THEN starts := '{4,5}'; leads := 7;
    WHEN 'reissue' THEN starts := '{4,5}'; leads := 7; -- another one is in its place
    ELSE
        RAISE EXCEPTION 'verb: % is not one of redrive, skip, release, discard', coalesce(outbox_decide.verb, 'NULL')
            USING ERRCODE = 'invalid_parameter_value';
    END CASE;
    IF leads = 7 AND coalesce(btrim(outbox_decide.reason), '') = '' THEN
        RAISE EXCEPTION 'reason: a % must have one: nobody will see these events again', outbox_decide.verb
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF pg_catalog.cardinality(events) > 10000 THEN
        RAISE EXCEPTION 'events: % of them, the limit of one action is 10000', pg_catalog.cardinality(events)
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- At any other level the statement would not see what was done while it waited for the row.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'outbox_act needs READ COMMITTED, this transaction is %',
            upper(current_setting('transaction_isolation'))
            USING ERRCODE = 'invalid_transaction_state', HINT = 'BEGIN ISOLATION LEVEL READ COMMITTED';
    END IF;
    PERFORM set_config('idle_in_transaction_session_timeout', '10s', true);
    -- One that comes in parts has begun before, and whoever does the parts takes turns.
    over := followers_only;
    IF NOT in_parts THEN
        over := outbox_done_before(outbox_decide.verb, outbox_decide.action_id);
    END IF;
    PERFORM FROM outbox_meta FOR NO KEY UPDATE;

    RETURN QUERY
    WITH found AS MATERIALIZED (
        SELECT e.id, e.lane, e.seq, e.namespace, e.aggregate_type, e.aggregate_id, coalesce(h.kind, e.state) AS state,
               h.kind IS NOT NULL AS held
          FROM outbox_events e
          LEFT JOIN LATERAL (
            SELECT h.kind FROM outbox_held h WHERE h.lane = e.lane AND h.seq = e.seq OFFSET 0) h ON true
         WHERE e.id = ANY (events)
    ), earlier AS MATERIALIZED ( -- nothing is done to an event twice by one action
        SELECT a.event_id FROM (SELECT DISTINCT x.id FROM unnest(events) x(id)) u
         CROSS JOIN LATERAL (
            SELECT a.event_id FROM outbox_actions a
             WHERE a.action_id = outbox_decide.action_id AND a.event_id = u.id OFFSET 0) a
    ), chosen AS MATERIALIZED (
        SELECT f.* FROM found f
         WHERE f.state = ANY (starts) AND NOT over AND f.id NOT IN (SELECT x.event_id FROM earlier x)
           AND (outbox_decide.verb NOT IN ('redrive', 'reissue') OR NOT EXISTS ( -- nothing is left of an erased event
                SELECT FROM outbox_actions x WHERE x.event_id = f.id AND x.verb = 'erase' OFFSET 0))
    ), ended AS MATERIALIZED ( -- whose block ends now, or was ended by this action just before
        SELECT f.*, f.state = 4 AS now FROM found f
         WHERE leads <> 1 AND CASE f.state
                   WHEN 4 THEN (f.lane, f.seq) IN (SELECT c.lane, c.seq FROM chosen c)
                   -- It ended a block if the event blocked when it died, and nobody had skipped it since.
                   WHEN leads THEN f.id IN (SELECT x.event_id FROM earlier x)
                        AND EXISTS (SELECT FROM (SELECT d.id, d.blocking FROM outbox_dlq d
                                                  WHERE d.event_id = f.id ORDER BY d.id DESC LIMIT 1) AS last
                                     WHERE last.blocking AND NOT EXISTS (
                                        SELECT FROM outbox_actions s
                                         WHERE s.event_id = f.id AND s.dlq_id = last.id AND s.verb = 'skip'
                                           AND s.action_id <> outbox_decide.action_id))
               END
    ), followers AS MATERIALIZED ( -- the first that waits behind it, of each type: the topic is the registry's to know
        SELECT first.*, head.seq AS head, head.now
          FROM ended head
         CROSS JOIN LATERAL (
            SELECT DISTINCT ON (w.event_type) w.lane, w.seq, w.namespace, w.aggregate_type, w.aggregate_id, w.event_type
              FROM outbox_held w
             WHERE w.lane = head.lane AND w.namespace = head.namespace AND w.aggregate_type = head.aggregate_type
               AND w.aggregate_id = head.aggregate_id AND w.seq > head.seq
               AND w.kind + 0 = 3 -- with the bare column the planner may read all that wait in the lane
             ORDER BY w.event_type, w.seq) AS first
         -- One with another held event of its type before it would be due and could not go. OFFSET keeps this a look
         -- into the index instead of a join with all held events.
         WHERE NOT EXISTS (
            SELECT FROM outbox_held b
             WHERE b.lane = first.lane AND b.namespace = first.namespace AND b.aggregate_type = first.aggregate_type
               AND b.aggregate_id = first.aggregate_id AND b.event_type = first.event_type AND b.seq < first.seq
               AND b.kind <> 3 AND (b.lane, b.seq) NOT IN (SELECT c.lane, c.seq FROM chosen c)
            OFFSET 0)
    ), keys AS MATERIALIZED (
        SELECT c.lane, c.seq, c.id FROM chosen c WHERE c.held
        UNION
        SELECT f.lane, f.seq, NULL FROM followers f
    ), locked AS MATERIALIZED ( -- as they are now; one without an id is a follower
        SELECT k.id, h.lane, h.seq, h.kind, h.namespace, h.aggregate_type, h.aggregate_id, h.event_type,
               k.id IS NOT NULL AND h.kind = ANY (starts) AS acts
          FROM unnest(ARRAY(SELECT k.lane FROM keys k), ARRAY(SELECT k.seq FROM keys k), ARRAY(SELECT k.id FROM keys k))
               AS k(lane, seq, id)
          JOIN outbox_held h ON h.lane = k.lane AND h.seq = k.seq
         ORDER BY h.lane, h.seq FOR UPDATE OF h
    ), dead AS MATERIALIZED ( -- when all of locked is: a CTE is read as far as somebody asks, and a count asks for all
        SELECT e.id, e.lane, e.seq, e.state, e.state = 5 AND 5 = ANY (starts) AS acts
          FROM unnest(ARRAY(SELECT c.lane FROM chosen c WHERE NOT c.held AND (SELECT count(*) FROM locked) >= 0),
                      ARRAY(SELECT c.seq FROM chosen c WHERE NOT c.held)) AS k(lane, seq)
          JOIN outbox_events e ON e.lane = k.lane AND e.seq = k.seq
         ORDER BY e.lane, e.seq FOR NO KEY UPDATE OF e
    ), gone AS MATERIALIZED ( -- a relay was faster: nothing to decide, so whoever is at it is not waited for
        SELECT c.lane, c.seq FROM chosen c
         WHERE c.held AND (c.lane, c.seq) NOT IN (SELECT l.lane, l.seq FROM locked l)
    ), became AS MATERIALIZED (
        SELECT e.id, e.state
          FROM unnest(ARRAY(SELECT g.lane FROM gone g), ARRAY(SELECT g.seq FROM gone g)) AS k(lane, seq)
          JOIN outbox_events e ON e.lane = k.lane AND e.seq = k.seq
           FOR NO KEY UPDATE OF e SKIP LOCKED
    ), acted AS MATERIALIZED (
        SELECT l.id, l.lane, l.seq, true AS held FROM locked l WHERE l.acts
        UNION ALL
        SELECT d.id, d.lane, d.seq, false FROM dead d WHERE d.acts
    ), promoted AS MATERIALIZED ( -- CASE keeps it a look into a hash table
        SELECT l.lane, l.seq FROM locked l
         WHERE CASE WHEN l.id IS NULL AND l.kind = 3 THEN (l.lane, l.seq) IN (
                SELECT f.lane, f.seq FROM followers f
                 WHERE NOT f.now OR (f.lane, f.head) IN (SELECT a.lane, a.seq FROM acted a WHERE a.held)) END
    ), due AS MATERIALIZED ( -- a relay looks for retries that are due
        SELECT a.lane, a.seq FROM acted a WHERE a.held AND leads = 1
        UNION ALL
        SELECT p.lane, p.seq FROM promoted p
    ), retried AS (
        UPDATE outbox_held h
           SET kind = 1, due = clock_timestamp(), since = clock_timestamp(), version = DEFAULT
          FROM unnest(ARRAY(SELECT d.lane FROM due d), ARRAY(SELECT d.seq FROM due d)) AS k(lane, seq)
         WHERE h.lane = k.lane AND h.seq = k.seq
    ), let_go AS (
        DELETE FROM outbox_held h
         USING unnest(ARRAY(SELECT a.lane FROM acted a WHERE a.held), ARRAY(SELECT a.seq FROM acted a WHERE a.held))
               AS k(lane, seq)
         WHERE h.lane = k.lane AND h.seq = k.seq AND leads <> 1
    ), changed AS ( -- a release changes nothing of the event itself
        UPDATE outbox_events e
           SET state = leads, attempt_count = CASE outbox_decide.verb WHEN 'redrive' THEN 0 ELSE e.attempt_count END
          FROM unnest(ARRAY(SELECT a.lane FROM acted a), ARRAY(SELECT a.seq FROM acted a),
                      ARRAY(SELECT a.held FROM acted a)) AS k(lane, seq, held)
         WHERE e.lane = k.lane AND e.seq = k.seq AND outbox_decide.verb <> 'release'
        RETURNING e.lane, e.seq, e.namespace, e.event_type, e.aggregate_type, e.aggregate_id, k.held
    ), held_again AS (
        INSERT INTO outbox_held (lane, seq, kind, due, namespace, event_type, aggregate_type, aggregate_id)
        SELECT c.lane, c.seq, 1, clock_timestamp(), c.namespace, c.event_type, c.aggregate_type, c.aggregate_id
          FROM changed c WHERE NOT c.held AND leads = 1
    ), logged AS (
        INSERT INTO outbox_actions (action_id, verb, event_id, dlq_id, actor, reason, target)
        SELECT outbox_decide.action_id, outbox_decide.verb, a.id,
               CASE outbox_decide.verb WHEN 'release' THEN NULL
                    ELSE (SELECT max(d.id) FROM outbox_dlq d WHERE d.event_id = a.id) END,
               outbox_decide.actor, outbox_decide.reason,
               CASE outbox_decide.verb WHEN 'reissue' THEN 'as ' || outbox_uuid7() END -- outbox_reissue makes it
          FROM (SELECT DISTINCT a.id FROM acted a) AS a
    )
    SELECT r.id,
           CASE WHEN bool_or(r.what = 'before') THEN 'done before' -- also where retention has deleted the event since
                WHEN bool_or(r.what = 'done') THEN 'done'
                WHEN bool_or(r.what IN ('found', 'locked')) THEN 'not applicable'
                ELSE 'not found' END,
           coalesce(max(r.state) FILTER (WHERE r.what = 'locked'), -- behind its lock it is known better
                    max(r.state) FILTER (WHERE r.what = 'found'))
      FROM (SELECT 'asked' AS what, u.id, NULL::smallint AS state FROM unnest(events) AS u(id)
            UNION ALL
            SELECT 'found', f.id, f.state FROM found f
            UNION ALL
            SELECT 'locked', l.id, l.kind FROM locked l WHERE l.id IS NOT NULL
            UNION ALL
            SELECT 'locked', d.id, d.state FROM dead d
            UNION ALL
            SELECT 'locked', b.id, b.state FROM became b
            UNION ALL
            SELECT 'done', a.id, NULL FROM acted a
            UNION ALL
            SELECT 'before', x.event_id, NULL FROM earlier x) AS r
     GROUP BY r.id HAVING bool_or(r.what = 'asked');
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION outbox_act(actor text, reason text, verb text, events uuid[],
    action_id uuid DEFAULT gen_random_uuid())
RETURNS TABLE (event_id uuid, outcome text, was smallint) LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF outbox_act.verb = 'reissue' THEN -- of which this is one half
        RAISE EXCEPTION 'verb: outbox_reissue does that' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN QUERY SELECT d.event_id, d.outcome, d.was
      FROM outbox_decide(outbox_act.actor, outbox_act.reason, outbox_act.verb, events, outbox_act.action_id, false,
               false) d;
END
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION outbox_act(text, text, text, uuid[], uuid) IS 'What an operator decides about events: redrive, '
    'skip, release or discard. Who and why are written to outbox_actions.';

-- The payload of an event under another id: the same bytes otherwise. With data, those take the place of its own. Null
-- where that cannot be: the payload is no envelope of this event.
-- +goose StatementBegin
CREATE FUNCTION outbox_payload_as(payload json, old uuid, new uuid, data json, made_at timestamptz) RETURNS json
    LANGUAGE plpgsql AS $$
DECLARE
    other json;
BEGIN
    IF data IS NULL THEN
        IF (payload ->> 'eventId' = old::text) IS NOT TRUE THEN
            RETURN NULL;
        END IF;
        other := regexp_replace(payload::text, '("eventId"[[:space:]]*:[[:space:]]*")' || old || '"',
            '\1' || new || '"');
        IF other ->> 'eventId' = new::text
            AND (other -> 'data')::text IS NOT DISTINCT FROM (payload -> 'data')::text THEN
            RETURN other;
        END IF;
        RETURN NULL;
    END IF;
    RETURN '{"version":' || coalesce(substring(payload ->> 'version' FROM '^[1-9][0-9]{0,8}$'), '1') || ',"eventId":"'
        || new || '","occurredAt":'
        || coalesce((payload -> 'occurredAt')::text,
            to_json(to_char(made_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))::text)
        || coalesce(',"actor":' || (payload -> 'actor')::text, '') || ',"data":' || data::text || '}';
EXCEPTION WHEN data_exception THEN -- it holds what json stores and cannot read
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- The headers of a new event that is made of another. Null where there can be none: whoever names the lane may have
-- written any JSON, and a header more may be one too many bytes.
-- +goose StatementBegin
CREATE FUNCTION outbox_headers_as(headers json, reissue_of uuid) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
    other json;
BEGIN
    SELECT json_object_agg(h.key, h.value) INTO other
      FROM (SELECT h.key, h.value FROM json_each(headers) h WHERE h.key <> 'reissue_of'
            UNION ALL SELECT 'reissue_of', to_json(outbox_headers_as.reissue_of)) h;
    RETURN CASE WHEN octet_length(other::text) <= 524288 THEN other END;
EXCEPTION WHEN data_exception THEN -- it is no object, or holds what json stores and cannot read
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- A part of a reissue: the caller has begun the action. Whether an event is dead, or published or discarded, is looked
-- at behind the locks: somebody else may have made a new event of it since the caller looked.
-- +goose StatementBegin
CREATE FUNCTION outbox_reissue_part(actor text, reason text, events uuid[], data json, action_id uuid,
    dead_only boolean, again boolean)
RETURNS TABLE (event_id uuid, outcome text, was smallint, new_id uuid) LANGUAGE plpgsql SET jit = off AS $$
DECLARE
    fit     uuid[]; -- what can have another id
    dead    uuid[]; -- what was dead until now
    closed  uuid[]; -- what was published or discarded before
    results jsonb;
BEGIN
    -- At any other level what was erased while this waited would not be seen.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'outbox_reissue needs READ COMMITTED, this transaction is %',
            upper(current_setting('transaction_isolation'))
            USING ERRCODE = 'invalid_transaction_state', HINT = 'BEGIN ISOLATION LEVEL READ COMMITTED';
    END IF;
    PERFORM set_config('idle_in_transaction_session_timeout', '10s', true);
    PERFORM FROM outbox_meta FOR NO KEY UPDATE;
    fit := ARRAY(SELECT e.id FROM outbox_events e
                  WHERE e.id = ANY (events)
                    AND outbox_payload_as(e.payload_json, e.id, gen_random_uuid(), outbox_reissue_part.data,
                            e.created_at) IS NOT NULL
                    AND outbox_headers_as(e.headers, e.id) IS NOT NULL
                    AND NOT EXISTS ( -- nothing is left of an erased event
                        SELECT FROM outbox_actions x WHERE x.event_id = e.id AND x.verb = 'erase' OFFSET 0));
    -- First the dead ones, which this locks: nobody else decides about them meanwhile.
    SELECT coalesce(jsonb_agg(d), '[]') INTO results
      FROM outbox_decide(outbox_reissue_part.actor, outbox_reissue_part.reason, 'reissue', fit,
               outbox_reissue_part.action_id, true, false) d;
    dead := ARRAY(SELECT r.event_id FROM jsonb_to_recordset(results) r(event_id uuid, outcome text)
                   WHERE r.outcome = 'done');
    WITH there AS MATERIALIZED ( -- retention, which deletes in this order, may be at them
        SELECT e.id FROM outbox_events e
         WHERE e.id = ANY (fit) AND e.state IN (6, 7) AND dead_only IS FALSE
           AND (again OR NOT EXISTS (
                SELECT FROM outbox_actions x WHERE x.event_id = e.id AND x.verb = 'reissue' OFFSET 0))
         ORDER BY e.seq FOR KEY SHARE
    ), logged AS (
        INSERT INTO outbox_actions (action_id, verb, event_id, actor, reason, target)
        SELECT outbox_reissue_part.action_id, 'reissue', t.id, outbox_reissue_part.actor, outbox_reissue_part.reason,
               'as ' || outbox_uuid7()
          FROM there t
            ON CONFLICT ON CONSTRAINT outbox_actions_once DO NOTHING
        RETURNING outbox_actions.event_id
    )
    SELECT ARRAY(SELECT l.event_id FROM logged l) INTO closed;
    RETURN QUERY
    SELECT u.id, CASE WHEN u.id = ANY (dead) OR u.id = ANY (closed) THEN 'done'
                      WHEN a.target IS NOT NULL THEN 'done before'
                      WHEN e.id IS NOT NULL THEN 'not applicable' ELSE 'not found' END,
           coalesce(r.was, h.kind, e.state), substr(coalesce(a.target, o.target), 4)::uuid
      FROM (SELECT DISTINCT x.id FROM unnest(events) x(id)) u
      LEFT JOIN jsonb_to_recordset(results) r(event_id uuid, was smallint) ON r.event_id = u.id
      LEFT JOIN LATERAL (SELECT e.id, e.lane, e.seq, e.state FROM outbox_events e WHERE e.id = u.id LIMIT 1) e ON true
      LEFT JOIN LATERAL (
        SELECT h.kind FROM outbox_held h WHERE h.lane = e.lane AND h.seq = e.seq OFFSET 0) h ON true
      LEFT JOIN LATERAL (
        SELECT a.target FROM outbox_actions a
         WHERE a.action_id = outbox_reissue_part.action_id AND a.event_id = u.id OFFSET 0) a ON true
      LEFT JOIN LATERAL ( -- the new event that another action has made of it
        SELECT x.target FROM outbox_actions x
         WHERE x.event_id = e.id AND x.verb = 'reissue' ORDER BY x.id DESC LIMIT 1) o ON true;
    -- Last of all, and made before the first is written: a number that is drawn and not committed is waited for.
    WITH made AS MATERIALIZED (
        SELECT e.seq, n.id, e.namespace, e.event_type, e.aggregate_type, e.aggregate_id, e.tenant_id, e.dedupe_key,
               outbox_payload_as(e.payload_json, e.id, n.id, outbox_reissue_part.data, e.created_at) AS payload,
               outbox_headers_as(e.headers, e.id) AS headers
          FROM unnest(dead || closed) u(id)
         CROSS JOIN LATERAL (
            SELECT substr(a.target, 4)::uuid AS id FROM outbox_actions a
             WHERE a.action_id = outbox_reissue_part.action_id AND a.event_id = u.id OFFSET 0) n
         CROSS JOIN LATERAL (SELECT * FROM outbox_events e WHERE e.id = u.id LIMIT 1) e
    )
    INSERT INTO outbox_events (lane, id, namespace, event_type, aggregate_type, aggregate_id, tenant_id, dedupe_key,
        payload_json, headers)
    SELECT outbox_lane(m.namespace, m.aggregate_type, m.aggregate_id), m.id, m.namespace, m.event_type,
           m.aggregate_type, m.aggregate_id, m.tenant_id, m.dedupe_key, m.payload, m.headers
      FROM made m ORDER BY m.seq;
END
$$;
-- +goose StatementEnd

-- Issues events again as new ones at the tail, each with an id of its own and the header reissue_of, at most 10,000 of
-- them: for consumers it is something new. A dead event is discarded with it, and its followers go. With data there is
-- one event, and the new one has these: an event is never edited. Answers for each event what came of it, as outbox_act
-- does, and the new event's id. Of what may still be published none is made, and with dead_only none of what is
-- published or discarded: a reissue leaves an event discarded, so that a second one, at the same time or later, makes
-- no other. Of what has a new event by another action none is made either, and the answer has that one, unless "again"
-- asks for it.
--   SELECT * FROM outbox_reissue('ada', 'the amount was wrong', '{01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e}', '{"a":1}');
-- Done again by the same action it lets followers go that came meanwhile, as outbox_act does.
-- States: 4 dead and blocking, 5 dead, 6 published, 7 discarded.
-- +goose StatementBegin
CREATE FUNCTION outbox_reissue(actor text, reason text, events uuid[], data json DEFAULT NULL,
    action_id uuid DEFAULT gen_random_uuid(), dead_only boolean DEFAULT false, again boolean DEFAULT false)
RETURNS TABLE (event_id uuid, outcome text, was smallint, new_id uuid) LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    old      outbox_events;
    other    CONSTANT uuid NOT NULL := outbox_uuid7(); -- as the new one's will be
    envelope json;
BEGIN
    IF pg_catalog.cardinality(events) > 10000 THEN
        RAISE EXCEPTION 'events: % of them, the limit of one call is 10000', pg_catalog.cardinality(events)
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Call it again with the same action_id.';
    END IF;
    IF outbox_reissue.data IS NOT NULL THEN
        IF pg_catalog.cardinality(events) <> 1 THEN
            RAISE EXCEPTION 'data: they are for one event' USING ERRCODE = 'invalid_parameter_value';
        END IF;
        PERFORM outbox_check_data(outbox_reissue.data);
        -- What no emit would write is not written here either.
        SELECT * INTO old FROM outbox_events e WHERE e.id = events[1] LIMIT 1;
        envelope := outbox_payload_as(old.payload_json, old.id, other, outbox_reissue.data, old.created_at);
        IF octet_length(envelope::text) > 1048576 THEN
            RAISE EXCEPTION 'data: the stored payload would be % bytes, the limit is 1048576',
                octet_length(envelope::text) USING ERRCODE = 'check_violation';
        END IF;
        PERFORM outbox_check_event(other, old.namespace, old.event_type, old.aggregate_type,
            old.aggregate_id, old.tenant_id, old.dedupe_key, envelope, NULL);
    END IF;
    -- Sent again it has the same data, and so the same payload, and with data the same event. What an erased event had
    -- nobody can tell.
    IF outbox_done_before('reissue', outbox_reissue.action_id) AND EXISTS (
        SELECT FROM (SELECT a.event_id, a.target FROM outbox_actions a
                      WHERE a.action_id = outbox_reissue.action_id LIMIT 1) a
          LEFT JOIN outbox_events o ON o.id = a.event_id
          LEFT JOIN outbox_events n ON n.id = substr(a.target, 4)::uuid
         WHERE outbox_reissue.data IS NOT NULL AND a.event_id <> ALL (events)
            OR n.payload_json::text
                <> outbox_payload_as(o.payload_json, o.id, n.id, outbox_reissue.data, o.created_at)::text
               AND NOT EXISTS (
                SELECT FROM outbox_actions x WHERE x.event_id IN (o.id, n.id) AND x.verb = 'erase')) THEN
        RAISE EXCEPTION 'the action''s id was used before, with other data: another decision needs another id'
            USING ERRCODE = 'unique_violation';
    END IF;
    RETURN QUERY SELECT p.event_id, p.outcome, p.was, p.new_id
      FROM outbox_reissue_part(outbox_reissue.actor, outbox_reissue.reason, events, outbox_reissue.data,
               outbox_reissue.action_id, outbox_reissue.dead_only, outbox_reissue.again) p;
END
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION outbox_reissue(text, text, uuid[], json, uuid, boolean, boolean) IS 'Issues events again as new '
    'ones. Who and why are written to outbox_actions, with the new id.';

SELECT outbox_seal();
UPDATE outbox_meta SET schema_version = 4;

-- +goose Down
DROP FUNCTION outbox_reissue(text, text, uuid[], json, uuid, boolean, boolean);
DROP FUNCTION outbox_reissue_part(text, text, uuid[], json, uuid, boolean, boolean);
DROP FUNCTION outbox_headers_as(json, uuid);
DROP FUNCTION outbox_payload_as(json, uuid, uuid, json, timestamptz);
DROP FUNCTION outbox_act(text, text, text, uuid[], uuid);
DROP FUNCTION outbox_decide(text, text, text, uuid[], uuid, boolean, boolean);
DROP FUNCTION outbox_done_before(text, uuid, text);
DROP TABLE outbox_actions;
DROP TABLE outbox_dlq;
DROP FUNCTION outbox_keep_resolution();
DROP FUNCTION outbox_keep_unresolved();
UPDATE outbox_meta SET schema_version = 3;
