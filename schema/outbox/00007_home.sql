-- Where the outbox lives, so that a relay notices a restored or copied database. outbox_grant (00005) has who
-- may use it.

-- +goose Up

-- The server that the relays last worked on. Each keeps seen_at fresh, and none writes here while it finds
-- itself elsewhere: then a recent seen_at tells a failover from a restore.
CREATE TABLE outbox_home (
    singleton         boolean     PRIMARY KEY DEFAULT true CHECK (singleton),
    timeline          integer     NOT NULL, -- every promotion and every restore begins a new one
    system_identifier bigint      NOT NULL, -- drawn when the cluster was made; its standbys and backups share it
    since             timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at           timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);
COMMENT ON TABLE outbox_home IS 'One row: the cluster and timeline that the relays work on, since when, and when one was last there. None: no relay has been here yet.';

-- A resume is about the whole outbox: its event_id is outbox_meta.installation.
ALTER TABLE outbox_actions DROP CONSTRAINT outbox_actions_verb;
ALTER TABLE outbox_actions ADD CONSTRAINT outbox_actions_verb
    CHECK (verb IN ('redrive', 'skip', 'release', 'discard', 'redeliver', 'reissue', 'resume'));

-- Says that the relays shall work on this server from now on. The answer is "done", "done before" by the same
-- action, or "refused": nothing is paused.
--   SELECT outbox_resume('ada', 'restored on purpose, consumers know the ids');
-- +goose StatementBegin
CREATE FUNCTION outbox_resume(actor text, reason text, action_id uuid DEFAULT gen_random_uuid()) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    here    CONSTANT bigint  := (SELECT s.system_identifier FROM pg_control_system() s);
    now_on  CONSTANT integer := ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer;
    earlier text;
BEGIN
    -- The same action, sent twice at the same time, is done once and answered twice.
    PERFORM pg_advisory_xact_lock(hashtextextended(outbox_resume.action_id::text, 0));
    SELECT a.verb INTO earlier FROM outbox_actions a WHERE a.action_id = outbox_resume.action_id LIMIT 1;
    IF earlier = 'resume' THEN
        RETURN 'done before';
    ELSIF earlier IS NOT NULL THEN
        RAISE EXCEPTION 'the action''s id was used before, for a %: another decision needs another id', earlier USING ERRCODE = 'unique_violation';
    END IF;
    UPDATE outbox_home h SET system_identifier = here, timeline = now_on, since = clock_timestamp(), seen_at = clock_timestamp()
     WHERE h.system_identifier <> here OR h.timeline <> now_on;
    IF NOT FOUND THEN
        RETURN 'refused';
    END IF;
    INSERT INTO outbox_actions (action_id, verb, event_id, actor, reason)
    SELECT outbox_resume.action_id, 'resume', m.installation, outbox_resume.actor, outbox_resume.reason FROM outbox_meta m;
    RETURN 'done';
END
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION outbox_resume(text, text, uuid) IS 'Lets the relays go on with a restored or copied database. Who and why are written to outbox_actions.';

SELECT outbox_seal();
UPDATE outbox_meta SET schema_version = 7;

-- +goose Down
DROP FUNCTION outbox_resume(text, text, uuid);
DELETE FROM outbox_actions WHERE verb = 'resume';
ALTER TABLE outbox_actions DROP CONSTRAINT outbox_actions_verb;
ALTER TABLE outbox_actions ADD CONSTRAINT outbox_actions_verb
    CHECK (verb IN ('redrive', 'skip', 'release', 'discard', 'redeliver', 'reissue'));
DROP TABLE outbox_home;
UPDATE outbox_meta SET schema_version = 6;
