-- Dead letters, what operators did about them, and requests to deliver published events again.

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
            CHECK (verb IN ('redrive', 'skip', 'release', 'discard', 'redeliver', 'reissue', 'pause', 'resume')),
    event_id   uuid        NOT NULL, -- of a pause and a resume: outbox_meta.installation
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
COMMENT ON COLUMN outbox_actions.target IS 'What was paused or resumed: all, restored, topic NAME, or type NAME. '
    'Null: the action is about the event.';
CREATE INDEX outbox_actions_dlq_id ON outbox_actions (dlq_id, verb);
CREATE INDEX outbox_actions_event_id ON outbox_actions (event_id);

-- A published event that shall be delivered again under the same id. The event's own row does not
-- change; the holder of its lane serves these with a rate of their own.
CREATE TABLE outbox_requests (
    id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    action_id       uuid        NOT NULL,
    event_id        uuid        NOT NULL,
    event_seq       bigint      NOT NULL,
    layout          smallint    NOT NULL,
    lane            smallint    NOT NULL,
    requested_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- How it ended: at most one of these. None: it is open.
    delivered_at    timestamptz,
    canceled_at     timestamptz,
    failed_at       timestamptz,
    next_attempt_at timestamptz, -- null: due now
    attempts        integer     NOT NULL DEFAULT 0,
    last_error      text COLLATE "C" CONSTRAINT outbox_requests_last_error CHECK (length(last_error) <= 2048),
    CONSTRAINT outbox_requests_once UNIQUE (action_id, event_id),
    CONSTRAINT outbox_requests_action FOREIGN KEY (action_id, event_id) REFERENCES outbox_actions (action_id, event_id)
        ON DELETE CASCADE,
    CONSTRAINT outbox_requests_one_end CHECK (num_nonnulls(delivered_at, canceled_at, failed_at) <= 1)
);
COMMENT ON TABLE outbox_requests IS 'Published events to deliver once more, under the same id. Open while '
    'delivered_at, canceled_at and failed_at are null.';
-- What a lane's holder has to deliver again, in the order of the events.
CREATE INDEX outbox_requests_open ON outbox_requests (layout, lane, event_seq)
    WHERE delivered_at IS NULL AND canceled_at IS NULL AND failed_at IS NULL;
-- Retention must not take an event that shall still be delivered again.
CREATE INDEX outbox_requests_event_id ON outbox_requests (event_id)
    WHERE delivered_at IS NULL AND canceled_at IS NULL AND failed_at IS NULL;

CREATE TRIGGER outbox_dlq_append_only BEFORE UPDATE OR TRUNCATE ON outbox_dlq
    EXECUTE FUNCTION outbox_reject_change('What an operator does about a dead letter is a row in outbox_actions.');
CREATE TRIGGER outbox_actions_append_only BEFORE UPDATE OR TRUNCATE ON outbox_actions
    EXECUTE FUNCTION outbox_reject_change('The log of actions is append-only.');
CREATE TRIGGER outbox_requests_append_only
    BEFORE UPDATE OF id, action_id, event_id, event_seq, layout, lane, requested_at ON outbox_requests
    EXECUTE FUNCTION outbox_reject_change('Only how the request went may change.');
CREATE TRIGGER outbox_requests_keep_open
    AFTER DELETE ON outbox_requests FOR EACH ROW
    WHEN (OLD.delivered_at IS NULL AND OLD.canceled_at IS NULL AND OLD.failed_at IS NULL)
    EXECUTE FUNCTION outbox_reject_change('The request is open: cancel it first.');

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
-- foreign key takes its actions along.
-- +goose StatementBegin
CREATE FUNCTION outbox_keep_resolution() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM outbox_dlq d WHERE d.id = OLD.dlq_id) THEN
        RAISE EXCEPTION 'DELETE of outbox_actions is refused: dead letter % is still there', OLD.dlq_id
            USING ERRCODE = 'restrict_violation', HINT = 'The actions go with their dead letter.';
    END IF;
    RETURN OLD;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER outbox_actions_keep_resolution BEFORE DELETE ON outbox_actions
    FOR EACH ROW EXECUTE FUNCTION outbox_keep_resolution();

-- Begins an action: true if this same one was done before. Sent twice at the same time, it is done once and answered
-- twice.
-- +goose StatementBegin
CREATE FUNCTION outbox_done_before(this_verb text, this_action uuid) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    earlier text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(this_action::text, 0::bigint));
    SELECT a.verb INTO earlier FROM outbox_actions a WHERE a.action_id = this_action LIMIT 1;
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
-- Done again by the same action it changes nothing but followers that came meanwhile. Do that after a skip and a
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
CREATE FUNCTION outbox_act(actor text, reason text, verb text, events uuid[],
    action_id uuid DEFAULT gen_random_uuid())
RETURNS TABLE (event_id uuid, outcome text, was smallint) LANGUAGE plpgsql SECURITY DEFINER SET jit = off AS $$
DECLARE
    starts smallint[]; -- the states that the verb starts from
    leads  smallint;   -- the one that it leads to
BEGIN
    CASE outbox_act.verb
    WHEN 'redrive' THEN starts := '{4,5}'; leads := 1;
    WHEN 'skip'    THEN starts := '{4}';   leads := 5;
    WHEN 'release' THEN starts := '{2}';   leads := 1;
    WHEN 'discard' THEN starts := '{4,5}'; leads := 7;
    ELSE
        RAISE EXCEPTION 'verb: % is not one of redrive, skip, release, discard', coalesce(outbox_act.verb, 'NULL')
            USING ERRCODE = 'invalid_parameter_value';
    END CASE;
    IF leads = 7 AND coalesce(btrim(outbox_act.reason), '') = '' THEN
        RAISE EXCEPTION 'reason: a discard must have one: nobody will see these events again'
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
    PERFORM outbox_done_before(outbox_act.verb, outbox_act.action_id);
    PERFORM FROM outbox_meta FOR NO KEY UPDATE;

    RETURN QUERY
    WITH found AS MATERIALIZED (
        SELECT e.id, e.lane, e.seq, e.namespace, e.aggregate_type, e.aggregate_id, coalesce(h.kind, e.state) AS state,
               h.kind IS NOT NULL AS held
          FROM outbox_events e
          LEFT JOIN LATERAL (
            SELECT h.kind FROM outbox_held h WHERE h.lane = e.lane AND h.seq = e.seq OFFSET 0) h ON true
         WHERE e.id = ANY (events)
    ), earlier AS MATERIALIZED ( -- an action that has changed something is over
        SELECT a.event_id FROM outbox_actions a WHERE a.action_id = outbox_act.action_id
    ), chosen AS MATERIALIZED (
        SELECT f.* FROM found f WHERE f.state = ANY (starts) AND NOT EXISTS (SELECT FROM earlier)
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
                                           AND s.action_id <> outbox_act.action_id))
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
           SET state = leads, attempt_count = CASE outbox_act.verb WHEN 'redrive' THEN 0 ELSE e.attempt_count END
          FROM unnest(ARRAY(SELECT a.lane FROM acted a), ARRAY(SELECT a.seq FROM acted a),
                      ARRAY(SELECT a.held FROM acted a)) AS k(lane, seq, held)
         WHERE e.lane = k.lane AND e.seq = k.seq AND outbox_act.verb <> 'release'
        RETURNING e.lane, e.seq, e.namespace, e.event_type, e.aggregate_type, e.aggregate_id, k.held
    ), held_again AS (
        INSERT INTO outbox_held (lane, seq, kind, due, namespace, event_type, aggregate_type, aggregate_id)
        SELECT c.lane, c.seq, 1, clock_timestamp(), c.namespace, c.event_type, c.aggregate_type, c.aggregate_id
          FROM changed c WHERE NOT c.held AND leads = 1
    ), logged AS (
        INSERT INTO outbox_actions (action_id, verb, event_id, dlq_id, actor, reason)
        SELECT DISTINCT outbox_act.action_id, outbox_act.verb, a.id,
               CASE outbox_act.verb WHEN 'release' THEN NULL
                    ELSE (SELECT max(d.id) FROM outbox_dlq d WHERE d.event_id = a.id) END,
               outbox_act.actor, outbox_act.reason
          FROM acted a
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
COMMENT ON FUNCTION outbox_act(text, text, text, uuid[], uuid) IS 'What an operator decides about events: redrive, '
    'skip, release or discard. Who and why are written to outbox_actions.';

SELECT outbox_seal();
UPDATE outbox_meta SET schema_version = 4;

-- +goose Down
DROP FUNCTION outbox_act(text, text, text, uuid[], uuid);
DROP FUNCTION outbox_done_before(text, uuid);
DROP TABLE outbox_requests;
DROP TABLE outbox_actions;
DROP TABLE outbox_dlq;
DROP FUNCTION outbox_keep_resolution();
DROP FUNCTION outbox_keep_unresolved();
UPDATE outbox_meta SET schema_version = 3;
