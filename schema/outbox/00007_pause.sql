-- Pauses and limits: what operators keep the relays from publishing, and from publishing too fast. outbox_grant (00012)
-- has who may use them.

-- +goose Up

-- The pauses that stand. The relays look here about once per second; a pause is lifted by deleting its row, and what
-- was paused and resumed before stands in outbox_actions.
CREATE TABLE outbox_pauses (
    scope  text COLLATE "C" NOT NULL CONSTRAINT outbox_pauses_scope CHECK (scope IN ('all', 'topic', 'type')),
    name   text COLLATE "C" NOT NULL
        CONSTRAINT outbox_pauses_name
            CHECK (CASE scope WHEN 'all' THEN name = '' ELSE length(name) BETWEEN 1 AND 512 END),
    since  timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor  text COLLATE "C" NOT NULL CONSTRAINT outbox_pauses_actor CHECK (length(actor) BETWEEN 1 AND 256),
    reason text COLLATE "C" NOT NULL CONSTRAINT outbox_pauses_reason CHECK (length(reason) <= 2048),
    PRIMARY KEY (scope, name)
);
COMMENT ON TABLE outbox_pauses IS 'What operators have paused: everything, a topic, or an event type. Who, why and '
    'since when. The relays publish nothing of it.';

-- Has the relays publish nothing: of everything, of a topic, or of an event type. They know it within about a second,
-- finish what is in flight, and keep all else as it is. The answer is "done", "done before" by the same action, or
-- "not applicable": it is paused already.
--   SELECT outbox_pause('ada', 'the broker is being moved', 'all');
--   SELECT outbox_pause('ada', 'consumers are broken', 'topic', 'orders');
--   SELECT outbox_pause('ada', 'wrong amounts', 'type', 'order_created');
-- +goose StatementBegin
CREATE FUNCTION outbox_pause(actor text, reason text, scope text, name text DEFAULT '',
    action_id uuid DEFAULT gen_random_uuid())
RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF outbox_done_before('pause', outbox_pause.action_id, rtrim(outbox_pause.scope || ' ' || outbox_pause.name)) THEN
        RETURN 'done before';
    END IF;
    INSERT INTO outbox_pauses (scope, name, actor, reason)
    VALUES (outbox_pause.scope, outbox_pause.name, outbox_pause.actor, outbox_pause.reason) ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN 'not applicable';
    END IF;
    INSERT INTO outbox_actions (action_id, verb, event_id, actor, reason, target)
    SELECT outbox_pause.action_id, 'pause', m.installation, outbox_pause.actor, outbox_pause.reason,
           rtrim(outbox_pause.scope || ' ' || outbox_pause.name)
      FROM outbox_meta m;
    RETURN 'done';
END
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION outbox_pause(text, text, text, text, uuid) IS 'Has the relays publish nothing of a scope: all, '
    'topic or type, with its name. Who and why are written to outbox_actions.';

-- Ends a pause of the same scope and name. "restored" is the pause that relays make by themselves on a database that
-- was restored or copied: they work on this server from now on. The answer is as above;
-- "not applicable": nothing is paused.
--   SELECT outbox_resume('ada', 'the broker has moved', 'all');
--   SELECT outbox_resume('ada', 'restored on purpose, consumers know the ids', 'restored');
-- +goose StatementBegin
CREATE FUNCTION outbox_resume(actor text, reason text, scope text, name text DEFAULT '',
    action_id uuid DEFAULT gen_random_uuid())
RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    here   bigint;
    now_on integer;
    moment CONSTANT timestamptz := clock_timestamp();
BEGIN
    IF outbox_done_before('resume', outbox_resume.action_id,
           rtrim(outbox_resume.scope || ' ' || outbox_resume.name)) THEN
        RETURN 'done before';
    END IF;
    IF outbox_resume.scope = 'restored' THEN
        here := (SELECT s.system_identifier FROM pg_control_system() s);
        now_on := ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer;
        UPDATE outbox_identity h SET system_identifier = here, timeline = now_on, since = moment, seen_at = moment
         WHERE h.system_identifier <> here OR h.timeline <> now_on;
    ELSIF outbox_resume.scope IN ('all', 'topic', 'type') THEN
        DELETE FROM outbox_pauses p WHERE p.scope = outbox_resume.scope AND p.name = outbox_resume.name;
    ELSE
        RAISE EXCEPTION 'scope: % is not one of all, topic, type, restored', outbox_resume.scope
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF NOT FOUND THEN
        RETURN 'not applicable';
    END IF;
    INSERT INTO outbox_actions (action_id, verb, event_id, actor, reason, target)
    SELECT outbox_resume.action_id, 'resume', m.installation, outbox_resume.actor, outbox_resume.reason,
           rtrim(outbox_resume.scope || ' ' || outbox_resume.name)
      FROM outbox_meta m;
    RETURN 'done';
END
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION outbox_resume(text, text, text, text, uuid) IS 'Lets the relays go on with what was paused, or '
    'with a restored or copied database. Who and why are written to outbox_actions.';

-- The limits that stand: so many publishes to a topic may all relays together begin a second. The relays look here as
-- for pauses; what was set before stands in outbox_actions.
CREATE TABLE outbox_limits (
    topic  text COLLATE "C" PRIMARY KEY CONSTRAINT outbox_limits_topic CHECK (length(topic) BETWEEN 1 AND 512),
    rate   double precision NOT NULL CONSTRAINT outbox_limits_rate CHECK (rate BETWEEN 0.001 AND 1000000),
    since  timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor  text COLLATE "C" NOT NULL CONSTRAINT outbox_limits_actor CHECK (length(actor) BETWEEN 1 AND 256),
    reason text COLLATE "C" NOT NULL CONSTRAINT outbox_limits_reason CHECK (length(reason) <= 2048)
);
COMMENT ON TABLE outbox_limits IS 'How many events per second all relays together publish to a topic at most, as '
    'operators have set it. Who, why and since when.';
COMMENT ON COLUMN outbox_limits.rate IS 'Publishes a second, of all relays together, copies and retries included.';

-- Has all relays together publish at most so many events per second to a topic, from within about a second on. Null
-- ends the limit. The answer is as above; "not applicable": it is so already.
--   SELECT outbox_limit('ada', 'consumers come back slowly', 'orders', 200);
--   SELECT outbox_limit('ada', 'they have caught up', 'orders', NULL);
-- +goose StatementBegin
CREATE FUNCTION outbox_limit(actor text, reason text, topic text, rate double precision,
    action_id uuid DEFAULT gen_random_uuid())
RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    limited CONSTANT text := 'topic ' || outbox_limit.topic || ' ' || coalesce(outbox_limit.rate::text, 'none');
BEGIN
    IF outbox_done_before('limit', outbox_limit.action_id, limited) THEN
        RETURN 'done before';
    END IF;
    IF outbox_limit.rate IS NULL THEN
        DELETE FROM outbox_limits l WHERE l.topic = outbox_limit.topic;
    ELSE
        INSERT INTO outbox_limits AS l (topic, rate, actor, reason)
        VALUES (outbox_limit.topic, outbox_limit.rate, outbox_limit.actor, outbox_limit.reason)
        ON CONFLICT ON CONSTRAINT outbox_limits_pkey DO UPDATE
           SET rate = excluded.rate, since = excluded.since, actor = excluded.actor, reason = excluded.reason
         WHERE l.rate <> excluded.rate;
    END IF;
    IF NOT FOUND THEN
        RETURN 'not applicable';
    END IF;
    INSERT INTO outbox_actions (action_id, verb, event_id, actor, reason, target)
    SELECT outbox_limit.action_id, 'limit', m.installation, outbox_limit.actor, outbox_limit.reason,
           limited
      FROM outbox_meta m;
    RETURN 'done';
END
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION outbox_limit(text, text, text, double precision, uuid) IS 'Has all relays together publish at most '
    'so many events per second to a topic; null ends that. Who and why are written to outbox_actions.';

SELECT outbox_seal();
UPDATE outbox_meta SET schema_version = 7;

-- +goose Down
DROP FUNCTION outbox_limit(text, text, text, double precision, uuid);
DROP TABLE outbox_limits;
DROP FUNCTION outbox_resume(text, text, text, text, uuid);
DROP FUNCTION outbox_pause(text, text, text, text, uuid);
DROP TABLE outbox_pauses;
UPDATE outbox_meta SET schema_version = 6;
