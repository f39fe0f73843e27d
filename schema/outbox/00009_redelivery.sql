-- Requests to deliver published events again. outbox_grant (00012) has who may use them.

-- +goose Up

-- A published event that shall be delivered again under the same id. The event's own row does not
-- change; the holder of its lane sends the copies.
CREATE TABLE outbox_requests (
    id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    action_id    uuid        NOT NULL,
    event_id     uuid        NOT NULL,
    lane         smallint    NOT NULL,
    event_seq    bigint      NOT NULL,
    topic        text COLLATE "C" -- null: where the event's type goes
        CONSTRAINT outbox_requests_topic CHECK (length(topic) BETWEEN 1 AND 255),
    requested_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    due_at       timestamptz NOT NULL DEFAULT clock_timestamp(), -- not before: this is the rate of an action
    -- Who has it in hands (the token of a lane), and how often it was taken since somebody last came back with it.
    taken_by     uuid,
    taken        integer     NOT NULL DEFAULT 0,
    -- How it ended: at most one of these. None: it is open.
    delivered_at timestamptz,
    canceled_at  timestamptz,
    failed_at    timestamptz,
    attempts     integer     NOT NULL DEFAULT 0,
    last_error   text COLLATE "C" CONSTRAINT outbox_requests_last_error CHECK (length(last_error) <= 2048),
    CONSTRAINT outbox_requests_once UNIQUE (action_id, event_id),
    CONSTRAINT outbox_requests_action FOREIGN KEY (action_id, event_id) REFERENCES outbox_actions (action_id, event_id)
        ON DELETE CASCADE,
    CONSTRAINT outbox_requests_one_end CHECK (num_nonnulls(delivered_at, canceled_at, failed_at) <= 1)
);
COMMENT ON TABLE outbox_requests IS 'Published events to deliver once more, under the same id. Open while '
    'delivered_at, canceled_at and failed_at are null.';
-- What a lane's holder has to deliver again, in the order of the events.
CREATE INDEX outbox_requests_open ON outbox_requests (lane, event_seq, id)
    WHERE delivered_at IS NULL AND canceled_at IS NULL AND failed_at IS NULL;
-- Retention must not take an event that shall still be delivered again.
CREATE INDEX outbox_requests_event_id ON outbox_requests (event_id)
    WHERE delivered_at IS NULL AND canceled_at IS NULL AND failed_at IS NULL;

CREATE TRIGGER outbox_requests_append_only
    BEFORE UPDATE OF id, action_id, event_id, event_seq, lane, topic, requested_at ON outbox_requests
    EXECUTE FUNCTION outbox_reject_change('Only how the request went may change.');
CREATE TRIGGER outbox_requests_keep_open
    AFTER DELETE ON outbox_requests FOR EACH ROW
    WHEN (OLD.delivered_at IS NULL AND OLD.canceled_at IS NULL AND OLD.failed_at IS NULL)
    EXECUTE FUNCTION outbox_reject_change('The request is open: cancel it first.');

-- A part of a redelivery: the caller has begun the action.
-- +goose StatementBegin
CREATE FUNCTION outbox_redeliver_part(actor text, reason text, events uuid[], topic text, rate double precision,
    action_id uuid)
RETURNS TABLE (event_id uuid, outcome text, was smallint) LANGUAGE plpgsql SET jit = off AS $$
DECLARE
    begins timestamptz := clock_timestamp(); -- a part is due behind what is open of the part before
BEGIN
    -- At any other level the statement would not see what was erased while it waited for the row.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'outbox_redeliver needs READ COMMITTED, this transaction is %',
            upper(current_setting('transaction_isolation'))
            USING ERRCODE = 'invalid_transaction_state', HINT = 'BEGIN ISOLATION LEVEL READ COMMITTED';
    END IF;
    PERFORM set_config('idle_in_transaction_session_timeout', '10s', true);
    PERFORM FROM outbox_meta FOR SHARE; -- outbox_erase (00011) waits for this, and this for that
    IF rate IS NOT NULL THEN
        SELECT greatest(begins, max(r.due_at) + 1 / rate * interval '1 second') INTO begins
          FROM outbox_requests r
         WHERE r.action_id = outbox_redeliver_part.action_id
           AND r.delivered_at IS NULL AND r.canceled_at IS NULL AND r.failed_at IS NULL AND r.id > 0;
    END IF;
    RETURN QUERY
    WITH found AS MATERIALIZED ( -- two rows may have one id: the first of them is meant
        SELECT DISTINCT ON (e.id) e.id, e.lane, e.seq, coalesce(h.kind, e.state) AS state, EXISTS (
                   SELECT FROM outbox_actions a
                    WHERE a.action_id = outbox_redeliver_part.action_id AND a.event_id = e.id) AS before, EXISTS (
                   SELECT FROM outbox_actions a WHERE a.event_id = e.id AND a.verb = 'erase' OFFSET 0) AS erased
          FROM outbox_events e
          LEFT JOIN LATERAL (
            SELECT h.kind FROM outbox_held h WHERE h.lane = e.lane AND h.seq = e.seq OFFSET 0) h ON true
         WHERE e.id = ANY (events) ORDER BY e.id, e.seq
    ), chosen AS MATERIALIZED (
        SELECT f.*, row_number() OVER (ORDER BY f.seq) - 1 AS place FROM found f
         WHERE f.state = 6 AND NOT f.erased AND NOT f.before
    ), acted AS (
        INSERT INTO outbox_actions (action_id, verb, event_id, actor, reason)
        SELECT outbox_redeliver_part.action_id, 'redeliver', c.id, outbox_redeliver_part.actor,
               outbox_redeliver_part.reason
          FROM chosen c ORDER BY c.seq
    ), asked AS (
        INSERT INTO outbox_requests (action_id, event_id, lane, event_seq, topic, due_at)
        SELECT outbox_redeliver_part.action_id, c.id, c.lane, c.seq, outbox_redeliver_part.topic,
               begins + coalesce(c.place / outbox_redeliver_part.rate, 0) * interval '1 second'
          FROM chosen c ORDER BY c.seq
    )
    SELECT u.id, CASE WHEN f.before THEN 'done before' WHEN f.state = 6 AND NOT f.erased THEN 'done'
                      WHEN f.id IS NOT NULL THEN 'not applicable' ELSE 'not found' END, f.state
      FROM (SELECT DISTINCT a.id FROM unnest(events) a(id)) u LEFT JOIN found f ON f.id = u.id;
END
$$;
-- +goose StatementEnd

-- Asks for published events once more, at most 10,000 of them: for their own topics, or for one that is named. With a
-- rate they are due one after the other, so many per second, in the order of their numbers. Answers for each event what
-- came of it, as outbox_act does. Sent again, the action asks for those events only that it has not asked for: a large
-- one comes in parts, in the order of the numbers, and each is due behind the one before.
--   SELECT * FROM outbox_redeliver('ada', 'a new consumer', '{01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e}', 'orders-new');
-- States: 6 published.
-- +goose StatementBegin
CREATE FUNCTION outbox_redeliver(actor text, reason text, events uuid[], topic text DEFAULT NULL,
    rate double precision DEFAULT NULL, action_id uuid DEFAULT gen_random_uuid())
RETURNS TABLE (event_id uuid, outcome text, was smallint) LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF pg_catalog.cardinality(events) > 10000 THEN
        RAISE EXCEPTION 'events: % of them, the limit of one call is 10000', pg_catalog.cardinality(events)
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Call it again with the same action_id.';
    END IF;
    IF rate <= 0 THEN
        RAISE EXCEPTION 'rate: it must be above 0, or null for none' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- All copies of an action go to one topic.
    IF outbox_done_before('redeliver', outbox_redeliver.action_id) AND EXISTS (
        SELECT FROM (SELECT r.topic FROM outbox_requests r WHERE r.action_id = outbox_redeliver.action_id LIMIT 1) r
         WHERE r.topic IS DISTINCT FROM outbox_redeliver.topic) THEN
        RAISE EXCEPTION 'the action''s id was used before, for another topic: another decision needs another id'
            USING ERRCODE = 'unique_violation';
    END IF;
    RETURN QUERY SELECT p.event_id, p.outcome, p.was
      FROM outbox_redeliver_part(outbox_redeliver.actor, outbox_redeliver.reason, events, outbox_redeliver.topic,
               outbox_redeliver.rate, outbox_redeliver.action_id) p;
END
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION outbox_redeliver(text, text, uuid[], text, double precision, uuid) IS 'Asks for published events '
    'once more, under the same ids. Who and why are written to outbox_actions.';

-- Cancels the open requests of an action, at most 10,000 at a time, but for those that the holder of their lane has in
-- its hands, and says how many are left. When none is, no copy is sent any more: call it again until then.
-- All rows are locked before the lanes are looked at: whoever has taken one meanwhile is seen.
-- Where nothing is open nothing is decided, and nothing is logged.
-- +goose StatementBegin
CREATE FUNCTION outbox_cancel(actor text, reason text, requests_of uuid, action_id uuid DEFAULT gen_random_uuid())
RETURNS TABLE (canceled bigint, remaining bigint) LANGUAGE plpgsql SECURITY DEFINER SET jit = off AS $$
DECLARE
    whose  CONSTANT text NOT NULL := 'requests of ' || requests_of;
    before CONSTANT boolean NOT NULL := outbox_done_before('cancel', outbox_cancel.action_id, whose);
    locked bigint[];
BEGIN
    -- Relays wait for the requests that this locks, with all their copies.
    PERFORM set_config('idle_in_transaction_session_timeout', '10s', true);
    SELECT array_agg(r.id) INTO locked FROM (
        SELECT r.id FROM outbox_requests r
         WHERE r.action_id = requests_of AND r.delivered_at IS NULL AND r.canceled_at IS NULL AND r.failed_at IS NULL
         ORDER BY r.lane, r.event_seq, r.id LIMIT 10000 FOR UPDATE) r;
    IF locked IS NOT NULL AND NOT before THEN
        INSERT INTO outbox_actions (action_id, verb, event_id, actor, reason, target)
        SELECT outbox_cancel.action_id, 'cancel', m.installation, outbox_cancel.actor, outbox_cancel.reason, whose
          FROM outbox_meta m;
    END IF;
    UPDATE outbox_requests r SET canceled_at = clock_timestamp(), taken_by = NULL, taken = 0
     WHERE r.id = ANY (locked)
       AND NOT EXISTS (SELECT FROM outbox_lanes l WHERE l.lane = r.lane AND l.token = r.taken_by);
    GET DIAGNOSTICS canceled = ROW_COUNT;
    SELECT count(*) INTO remaining FROM (
        SELECT FROM outbox_requests r
         WHERE r.action_id = requests_of AND r.delivered_at IS NULL AND r.canceled_at IS NULL AND r.failed_at IS NULL
         LIMIT 10001) r;
    RETURN NEXT;
END
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION outbox_cancel(text, text, uuid, uuid) IS 'Cancels what is open of an action''s requests. Call it '
    'until none is left.';

SELECT outbox_seal();
UPDATE outbox_meta SET schema_version = 9;

-- +goose Down
DROP FUNCTION outbox_cancel(text, text, uuid, uuid);
DROP FUNCTION outbox_redeliver(text, text, uuid[], text, double precision, uuid);
DROP FUNCTION outbox_redeliver_part(text, text, uuid[], text, double precision, uuid);
DROP TABLE outbox_requests;
UPDATE outbox_meta SET schema_version = 8;
