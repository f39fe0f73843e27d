-- Jobs: what is done to many events, in parts, by whoever works on it. outbox_grant (00012) has who may use them.

-- +goose Up

-- One decision about all events that meet a filter. It is worked on in the order of the events' numbers, in parts; each
-- part, its rows in outbox_actions and how far it came are one transaction. Whoever started it may go away meanwhile.
CREATE TABLE outbox_jobs (
    id           uuid        PRIMARY KEY, -- of the action, whose rows in outbox_actions have it
    verb         text COLLATE "C" NOT NULL CONSTRAINT outbox_jobs_verb
        CHECK (verb IN ('redrive', 'skip', 'release', 'discard', 'redeliver', 'reissue')),
    filter       text COLLATE "C" NOT NULL CONSTRAINT outbox_jobs_filter CHECK (octet_length(filter) <= 65536),
    topic        text COLLATE "C" CONSTRAINT outbox_jobs_topic CHECK (length(topic) BETWEEN 1 AND 255),
    rate         double precision CONSTRAINT outbox_jobs_rate CHECK (rate > 0 AND rate < 'infinity'),
    most         bigint      NOT NULL CONSTRAINT outbox_jobs_most CHECK (most > 0), -- events, then it stops
    expected     bigint      NOT NULL, -- as the plan counted them
    actor        text COLLATE "C" NOT NULL CONSTRAINT outbox_jobs_actor CHECK (length(actor) BETWEEN 1 AND 256),
    reason       text COLLATE "C" NOT NULL CONSTRAINT outbox_jobs_reason CHECK (length(reason) BETWEEN 1 AND 2048),
    session_role name        NOT NULL DEFAULT session_user,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_seq     bigint      NOT NULL, -- events above it came after the decision
    after_seq    bigint      NOT NULL DEFAULT 0, -- events up to it are not meant
    last_at      timestamptz NOT NULL DEFAULT clock_timestamp(), -- what died or was published later is not meant
    state        text COLLATE "C" NOT NULL DEFAULT 'running' CONSTRAINT outbox_jobs_state
        CHECK (state IN ('running', 'paused', 'done', 'canceled', 'failed')),
    position     bigint      NOT NULL DEFAULT 0, -- all events up to this number are done with
    done         bigint      NOT NULL DEFAULT 0,
    passed       bigint      NOT NULL DEFAULT 0, -- were in no state for it any more
    again        uuid[]      NOT NULL DEFAULT '{}', -- whose followers are looked for once more: see outbox_act
    next_at      timestamptz NOT NULL DEFAULT clock_timestamp(), -- the next part is not due before: this is the rate
    worker       uuid,
    worker_name  text COLLATE "C" CONSTRAINT outbox_jobs_worker_name CHECK (length(worker_name) <= 256),
    work_until   timestamptz, -- nobody else takes it before
    error        text COLLATE "C" CONSTRAINT outbox_jobs_error CHECK (length(error) <= 2048),
    changed_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at     timestamptz,
    CONSTRAINT outbox_jobs_end CHECK ((ended_at IS NOT NULL) = (state IN ('done', 'canceled', 'failed')))
);
COMMENT ON TABLE outbox_jobs IS 'What is done to many events in parts: what, by whom, why, and how far it is.';
CREATE INDEX outbox_jobs_open ON outbox_jobs (created_at) WHERE ended_at IS NULL;
CREATE INDEX outbox_jobs_created_at ON outbox_jobs (created_at, id);
CREATE TRIGGER outbox_jobs_append_only
    BEFORE UPDATE OF id, verb, filter, topic, rate, most, expected, actor, reason, session_role, created_at, last_seq,
        after_seq, last_at
    ON outbox_jobs
    EXECUTE FUNCTION outbox_reject_change('Only how the job goes may change. Another decision is another job.');
CREATE TRIGGER outbox_jobs_keep BEFORE TRUNCATE ON outbox_jobs
    EXECUTE FUNCTION outbox_reject_change('It is a log of decisions.');

-- A job looks for dead letters by the numbers of their events.
CREATE INDEX outbox_dlq_event_seq ON outbox_dlq (event_seq);
-- How the copies of a job fare: what is open of them, among all that are sent, and what will not be. Where nothing was
-- open when the table was last analysed, each index of what is open looks as good as another. So the first is one that
-- only those can use who say id > 0: others, who look for an event, would read all of it.
CREATE INDEX outbox_requests_action_id ON outbox_requests (action_id)
    WHERE delivered_at IS NULL AND canceled_at IS NULL AND failed_at IS NULL AND id > 0;
CREATE INDEX outbox_requests_unsent ON outbox_requests (action_id)
    WHERE failed_at IS NOT NULL OR canceled_at IS NOT NULL;

-- A filter without the values that it looks for in payloads; the same text where it looks for none. Terms are apart by
-- white space outside of quotes, as the filter's language has it: by all that Unicode calls so. A quote may begin
-- within a term, and within quotes a backslash takes the next character as it is. Without both, a term of data begins
-- with "data.".
-- +goose StatementBegin
CREATE FUNCTION outbox_filter_without_values(filter text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    spaces CONSTANT text NOT NULL := '[:space:]' || chr(133) || chr(160) || chr(5760) || chr(8192) || '-' || chr(8202)
        || chr(8232) || chr(8233) || chr(8239) || chr(8287) || chr(12288);
    term   text;
    bare   text;
    kept   text := '';
    reads  boolean := false;
BEGIN
    FOR term IN
        SELECT m[1] FROM regexp_matches(filter COLLATE "C", '((?:[^"' || spaces || ']|"(?:[^"\\]|\\.)*")+)', 'g') m
    LOOP
        bare := translate(term, '"\', '');
        IF starts_with(bare, 'data.') THEN
            reads := true;
            term := split_part(bare, ':', 1) || ':...';
        END IF;
        kept := kept || ' ' || term;
    END LOOP;
    RETURN CASE WHEN reads THEN substr(kept, 2) ELSE filter END;
END
$$;
-- +goose StatementEnd

-- Starts a job. The answer is "done", or "done before": the same job was started under this id. It is about the events
-- whose numbers are above after_seq and not above last_seq, as they were planned, and which had died or were published
-- at last_at; null: all that there are now.
-- Whoever works on it reads what the filter asks for, and what it did says whether there was such an event. So only who
-- may read payloads may ask for what is in them. And the log, which viewers read, has no such values.
-- +goose StatementBegin
CREATE FUNCTION outbox_start_job(actor text, reason text, verb text, filter text, most bigint, expected bigint,
    topic text DEFAULT NULL, rate double precision DEFAULT NULL, action_id uuid DEFAULT gen_random_uuid(),
    last_seq bigint DEFAULT NULL, after_seq bigint DEFAULT NULL, last_at timestamptz DEFAULT NULL)
RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    shown   CONSTANT text NOT NULL := outbox_filter_without_values(outbox_start_job.filter);
    started CONSTANT text NOT NULL := left('job: ' || shown, 600);
BEGIN
    IF shown <> outbox_start_job.filter
        AND NOT has_column_privilege(session_user, 'outbox_events'::regclass, 'payload_json', 'SELECT') THEN
        RAISE EXCEPTION 'filter: % may not read payloads, and so not ask for what is in them', session_user
            USING ERRCODE = 'insufficient_privilege', COLUMN = 'payload_json';
    END IF;
    IF coalesce(btrim(outbox_start_job.reason), '') = '' THEN
        RAISE EXCEPTION 'reason: a job must have one' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF outbox_start_job.topic IS NOT NULL AND outbox_start_job.verb <> 'redeliver' THEN
        RAISE EXCEPTION 'topic: only copies can go to another one: the verb is redeliver'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF outbox_done_before(outbox_start_job.verb, outbox_start_job.action_id, started) THEN
        IF NOT EXISTS (SELECT FROM outbox_jobs j WHERE j.id = outbox_start_job.action_id
                          AND (j.filter, j.topic, j.rate, j.most, j.after_seq) IS NOT DISTINCT FROM
                              (outbox_start_job.filter, outbox_start_job.topic, outbox_start_job.rate,
                               outbox_start_job.most, greatest(outbox_start_job.after_seq, 0))) THEN
            RAISE EXCEPTION 'the action''s id was used before, for something else: another decision needs another id'
                USING ERRCODE = 'unique_violation';
        END IF;
        RETURN 'done before';
    END IF;
    INSERT INTO outbox_jobs (id, verb, filter, topic, rate, most, expected, actor, reason, last_seq, after_seq, last_at,
        position)
    SELECT outbox_start_job.action_id, outbox_start_job.verb, outbox_start_job.filter, outbox_start_job.topic,
           outbox_start_job.rate, outbox_start_job.most, outbox_start_job.expected, outbox_start_job.actor,
           outbox_start_job.reason, l.last_seq, greatest(outbox_start_job.after_seq, 0),
           least(outbox_start_job.last_at, clock_timestamp()),
           least(greatest(outbox_start_job.after_seq, 0), l.last_seq)
      FROM outbox_events_seq_seq s
     CROSS JOIN LATERAL (SELECT least(outbox_start_job.last_seq, s.last_value) AS last_seq) l;
    INSERT INTO outbox_actions (action_id, verb, event_id, actor, reason, target)
    SELECT outbox_start_job.action_id, outbox_start_job.verb, m.installation, outbox_start_job.actor,
           outbox_start_job.reason, started
      FROM outbox_meta m;
    RETURN 'done';
END
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION outbox_start_job(text, text, text, text, bigint, bigint, text, double precision, uuid, bigint,
    bigint, timestamptz) IS
    'Starts a job. Who and why are written to outbox_actions.';

-- Pauses, resumes or cancels a job. The answer is "done", "done before" by the same action, "not applicable", or "not
-- found". What of a redelivery is canceled has copies that are not sent yet: outbox_cancel ends them.
-- +goose StatementBegin
CREATE FUNCTION outbox_change_job(actor text, reason text, verb text, job uuid,
    action_id uuid DEFAULT gen_random_uuid())
RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    j outbox_jobs;
BEGIN
    IF outbox_change_job.verb NOT IN ('pause', 'resume', 'cancel') OR outbox_change_job.verb IS NULL THEN
        RAISE EXCEPTION 'verb: % is not one of pause, resume, cancel', coalesce(outbox_change_job.verb, 'NULL')
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF outbox_done_before(outbox_change_job.verb, outbox_change_job.action_id, 'job ' || job) THEN
        RETURN 'done before';
    END IF;
    SELECT * INTO j FROM outbox_jobs o WHERE o.id = job FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 'not found';
    END IF;
    IF NOT (CASE outbox_change_job.verb WHEN 'pause' THEN j.state = 'running'
                WHEN 'resume' THEN j.state IN ('paused', 'failed')
                ELSE j.state IN ('running', 'paused', 'failed') END) THEN
        RETURN 'not applicable';
    END IF;
    -- Nobody takes the second look at the followers of the last part any more, or nobody does for long.
    IF cardinality(j.again) > 0 THEN
        PERFORM outbox_decide(j.actor, j.reason, j.verb, j.again, j.id, true, true);
    END IF;
    UPDATE outbox_jobs o
       SET state = CASE outbox_change_job.verb WHEN 'pause' THEN 'paused' WHEN 'resume' THEN 'running'
                                               ELSE 'canceled' END,
           ended_at = CASE WHEN outbox_change_job.verb = 'cancel' THEN clock_timestamp() END,
           error = CASE WHEN outbox_change_job.verb <> 'resume' THEN o.error END,
           again = '{}', worker = NULL, worker_name = NULL, work_until = NULL, changed_at = clock_timestamp()
     WHERE o.id = job;
    INSERT INTO outbox_actions (action_id, verb, event_id, actor, reason, target)
    SELECT outbox_change_job.action_id, outbox_change_job.verb, m.installation, outbox_change_job.actor,
           outbox_change_job.reason, 'job ' || job
      FROM outbox_meta m;
    RETURN 'done';
END
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION outbox_change_job(text, text, text, uuid, uuid) IS 'Pauses, resumes or cancels a job. Who and why '
    'are written to outbox_actions.';

-- Takes a job to work on it for so many seconds: one that nobody has, or that this worker has already. The answer says
-- whether it has it now. To take it is no work yet: one that each takes and gives back is told of by its changed_at.
-- +goose StatementBegin
CREATE FUNCTION outbox_take_job(job uuid, worker uuid, worker_name text, seconds double precision)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF outbox_take_job.worker IS NULL THEN
        RAISE EXCEPTION 'worker: it must have an id' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    UPDATE outbox_jobs j
       SET worker = outbox_take_job.worker, worker_name = left(outbox_take_job.worker_name, 256),
           work_until = clock_timestamp() + least(seconds, 300) * interval '1 second'
     WHERE j.id = job AND j.state = 'running'
       AND (j.worker = outbox_take_job.worker OR j.worker IS NULL OR j.work_until <= clock_timestamp());
    RETURN FOUND;
END
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION outbox_take_job(uuid, uuid, text, double precision) IS 'Takes a job, so that nobody else works on '
    'it for a while.';

-- Does a part of a job: what it decides is done to these events, which are all there are between the job's position and
-- another one, and it goes on from there. It does nothing where another has the job, or where it is somewhere else than
-- the worker believes: then the answer is no row. A part of none is a step all the same.
-- A reissue is of dead events, unless the worker says that the filter asks for published or discarded ones: since it
-- looked, a dead one may have been published, or discarded by whoever has made a new event of it. Of those another new
-- event is made, if there is one already: whoever starts such a job was told what it means.
-- +goose StatementBegin
CREATE FUNCTION outbox_work_job(job uuid, worker uuid, was_at bigint, now_at bigint, events uuid[],
    dead_only boolean DEFAULT true)
RETURNS TABLE (done bigint, passed bigint, state text) LANGUAGE plpgsql SECURITY DEFINER SET jit = off AS $$
DECLARE
    j       outbox_jobs;
    acted   bigint := 0;
    others  bigint := 0;
    changed uuid[] := '{}';
    follows uuid[] := '{}';
BEGIN
    -- At any other level a part would not see what was done while it waited for the row.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'outbox_work_job needs READ COMMITTED, this transaction is %',
            upper(current_setting('transaction_isolation'))
            USING ERRCODE = 'invalid_transaction_state', HINT = 'BEGIN ISOLATION LEVEL READ COMMITTED';
    END IF;
    IF outbox_work_job.worker IS NULL THEN -- a job that nobody has is nobody's
        RAISE EXCEPTION 'worker: it must have an id' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT * INTO j FROM outbox_jobs o WHERE o.id = job FOR UPDATE;
    IF NOT FOUND OR j.state <> 'running' OR j.worker IS DISTINCT FROM outbox_work_job.worker
        OR j.position IS DISTINCT FROM was_at OR (now_at BETWEEN was_at AND j.last_seq) IS NOT TRUE THEN
        RETURN;
    END IF;
    -- Neither a client that is silent nor a lock that somebody holds must hold up the others.
    PERFORM set_config('idle_in_transaction_session_timeout', '10s', true), set_config('lock_timeout', '10s', true);
    -- The second look of the part before, in a transaction of its own: this one.
    IF cardinality(j.again) > 0 THEN
        PERFORM outbox_decide(j.actor, j.reason, j.verb, j.again, j.id, true, true);
    END IF;
    IF cardinality(events) > j.most - j.done THEN
        PERFORM outbox_fail_job(job, outbox_work_job.worker, 'it may change ' || j.most || ' events and has changed '
            || j.done || ', and there are more: what is above number ' || j.position || ' is left. Another job with '
            || 'the same filter and --after-seq ' || j.position || ' changes that and nothing twice');
        RETURN QUERY SELECT o.done, o.passed, o.state FROM outbox_jobs o WHERE o.id = job;
        RETURN;
    END IF;
    IF cardinality(events) > 0 THEN
        CASE j.verb
        WHEN 'redeliver' THEN
            SELECT array_agg(r.event_id) FILTER (WHERE r.outcome = 'done'), count(*) INTO changed, others
              FROM outbox_redeliver_part(j.actor, j.reason, events, j.topic, NULL, j.id) r;
        WHEN 'reissue' THEN
            SELECT array_agg(r.event_id) FILTER (WHERE r.outcome = 'done'), count(*) INTO changed, others
              FROM outbox_reissue_part(j.actor, j.reason, events, NULL, j.id, dead_only, true) r;
        ELSE
            SELECT array_agg(r.event_id) FILTER (WHERE r.outcome = 'done'), count(*) INTO changed, others
              FROM outbox_decide(j.actor, j.reason, j.verb, events, j.id, true, false) r;
        END CASE;
        acted := coalesce(cardinality(changed), 0);
        others := others - acted;
        IF j.verb IN ('skip', 'discard', 'reissue') AND acted > 0 THEN
            follows := changed;
        END IF;
    END IF;
    j.state := CASE
        WHEN now_at < j.last_seq OR cardinality(follows) > 0 THEN 'running'
        WHEN j.verb = 'redeliver' AND EXISTS (
            SELECT FROM outbox_requests q
             WHERE q.action_id = j.id
               AND q.delivered_at IS NULL AND q.canceled_at IS NULL AND q.failed_at IS NULL AND q.id > 0) THEN 'running'
        ELSE 'done' END;
    UPDATE outbox_jobs o
       SET position = now_at, done = o.done + acted, passed = o.passed + others, again = follows, state = j.state,
           next_at = clock_timestamp() + coalesce(acted / o.rate, 0) * interval '1 second',
           ended_at = CASE j.state WHEN 'done' THEN clock_timestamp() END,
           changed_at = clock_timestamp()
     WHERE o.id = job
    RETURNING o.done, o.passed, o.state INTO done, passed, state;
    RETURN NEXT;
END
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION outbox_work_job(uuid, uuid, bigint, bigint, uuid[], boolean) IS 'Does a part of a job, logs it, '
    'and notes how far the job is, in one transaction.';

-- Ends a job that cannot go on, with its error, which the log has as well: nobody decided this. It can be resumed.
-- +goose StatementBegin
CREATE FUNCTION outbox_fail_job(job uuid, worker uuid, error text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    j outbox_jobs;
BEGIN
    IF outbox_fail_job.worker IS NULL THEN
        RAISE EXCEPTION 'worker: it must have an id' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT * INTO j FROM outbox_jobs o
     WHERE o.id = job AND o.state = 'running' AND o.worker = outbox_fail_job.worker FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF cardinality(j.again) > 0 THEN
        PERFORM outbox_decide(j.actor, j.reason, j.verb, j.again, j.id, true, true);
    END IF;
    UPDATE outbox_jobs o
       SET state = 'failed', ended_at = clock_timestamp(), error = left(outbox_fail_job.error, 2048), again = '{}',
           worker = NULL, worker_name = NULL, work_until = NULL, changed_at = clock_timestamp()
     WHERE o.id = job;
    INSERT INTO outbox_actions (action_id, verb, event_id, actor, reason, target)
    SELECT gen_random_uuid(), 'fail', m.installation, coalesce(nullif(j.worker_name, ''), 'worker ' || j.worker),
           left(outbox_fail_job.error, 2048), 'job ' || job
      FROM outbox_meta m;
    RETURN true;
END
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION outbox_fail_job(uuid, uuid, text) IS 'Ends a job that cannot go on.';

SELECT outbox_seal();
UPDATE outbox_meta SET schema_version = 10;

-- +goose Down
DROP FUNCTION outbox_fail_job(uuid, uuid, text);
DROP FUNCTION outbox_work_job(uuid, uuid, bigint, bigint, uuid[], boolean);
DROP FUNCTION outbox_take_job(uuid, uuid, text, double precision);
DROP FUNCTION outbox_change_job(text, text, text, uuid, uuid);
DROP FUNCTION outbox_start_job(text, text, text, text, bigint, bigint, text, double precision, uuid, bigint, bigint,
    timestamptz);
DROP FUNCTION outbox_filter_without_values(text);
DROP INDEX outbox_requests_unsent;
DROP INDEX outbox_requests_action_id;
DROP INDEX outbox_dlq_event_seq;
DROP TABLE outbox_jobs;
UPDATE outbox_meta SET schema_version = 9;
