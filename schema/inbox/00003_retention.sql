-- Retention: forgets what no broker and no operator can bring again.

-- +goose Up

-- What the last run left, so that a clock that jumps deletes nothing.
CREATE TABLE inbox_retention (
    singleton   boolean     PRIMARY KEY DEFAULT true CHECK (singleton),
    cut_off     timestamptz, -- what was older was deleted; null: it never ran
    ran_at      timestamptz,
    -- the next batch begins here: behind what is deleted and not yet vacuumed
    place       timestamptz NOT NULL DEFAULT '-infinity',
    deleted     bigint      NOT NULL DEFAULT 0, -- since the beginning
    halted_at   timestamptz, -- when the last run stopped, because too much would go; null: it did not stop
    halt_reason text COLLATE "C" NOT NULL DEFAULT ''
) WITH (fillfactor = 50);
COMMENT ON TABLE inbox_retention IS 'One row: up to when retention deleted, when it last ran, and why it deletes '
    'nothing.';
INSERT INTO inbox_retention DEFAULT VALUES;

-- Deletes one batch of what was handled longer ago than keep: how many rows went, whether there are more, and why
-- none did, if they should not. Call it until there are no more, in a transaction for each call. Of several callers
-- one works, and the others are told that there is nothing to do.
--
-- It raises an error if keep is shorter than the horizon, the longest time after which an event may come once more:
-- that of the broker's retention, and of the outbox's where operators redeliver. And it deletes nothing when more would
-- go than time alone explains: a clock that jumped a year ahead would otherwise make consumers handle everything again
-- that still comes. It goes on by itself when the clock is right again; a person who knows that it is right says so by
-- confirmed.
--   SELECT * FROM inbox_clean();
--   SELECT * FROM inbox_clean(keep => '60 days', horizon => '37 days', batch => 5000);
-- +goose StatementBegin
CREATE FUNCTION inbox_clean(
    keep interval DEFAULT '720 hours', horizon interval DEFAULT '168 hours', batch integer DEFAULT 1000,
    max_step interval DEFAULT '168 hours', confirmed timestamptz DEFAULT NULL,
    OUT deleted bigint, OUT more boolean, OUT halt_reason text
) LANGUAGE plpgsql
    -- the reason is read by people anywhere
    SET timezone = 'UTC' SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres'
AS $$
DECLARE
    ordinary CONSTANT interval := '4 hours'; -- a step that nobody looks at
    few      CONSTANT bigint := 10000;       -- so many may go whatever their share
    at_once  CONSTANT timestamptz := date_trunc('second', clock_timestamp());
    last     inbox_retention;
    until    timestamptz;
    due      bigint;
    staying  bigint;
    newest   bigint;
BEGIN
    IF keep < horizon OR horizon < '1 minute' OR batch NOT BETWEEN 100 AND 5000 OR max_step <= ordinary
       OR num_nulls(keep, horizon, batch, max_step) > 0 THEN
        RAISE EXCEPTION
            'inbox_clean: keep % must be at least the horizon %, the horizon at least a minute, batch % from 100 to '
                '5000, max_step % more than %',
            keep, horizon, batch, max_step, ordinary USING ERRCODE = 'invalid_parameter_value';
    END IF;
    deleted := 0;
    more := false;
    SELECT * INTO last FROM inbox_retention FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    until := at_once - keep;

    IF confirmed IS NULL OR until > confirmed THEN
        IF at_once < last.ran_at - ordinary THEN
            halt_reason := format('the last run was at %s, which is ahead of the clock: it went back', last.ran_at);
        ELSIF until - last.cut_off > max_step THEN
            halt_reason := format('the cut-off would move from %s to %s, and %s is the most: the clock went ahead, '
                'keep was shortened, or nothing ran for long',
                last.cut_off, until, max_step);
        ELSIF last.cut_off IS NULL OR until - last.cut_off > ordinary THEN
            SELECT count(*) INTO due FROM inbox_handled h WHERE h.handled_at < until;
            IF due >= few THEN
                SELECT count(*) INTO staying
                  FROM (SELECT FROM inbox_handled h WHERE h.handled_at >= until ORDER BY h.handled_at LIMIT due) s;
                IF staying < due THEN
                    halt_reason := format('%s rows would go and %s stay: that is the greater part of them', due,
                        staying);
                END IF;
            END IF;
        END IF;
    END IF;
    IF halt_reason IS NOT NULL THEN
        -- A day more than the cut-off, because it moves on until somebody has read this.
        halt_reason := halt_reason || format('. If this is right, set confirmed to %s', until + interval '1 day');
        UPDATE inbox_retention r SET halted_at = at_once, halt_reason = inbox_clean.halt_reason;
        RETURN;
    END IF;

    -- By their place, with the age once more: in a partitioned table two rows can have one place.
    WITH old AS MATERIALIZED (
        SELECT h.ctid AS row_at, h.handled_at FROM inbox_handled h
         WHERE h.handled_at >= last.place AND h.handled_at < until
         ORDER BY h.handled_at LIMIT (SELECT batch)
    ), gone AS (
        DELETE FROM inbox_handled h WHERE h.ctid = ANY (ARRAY(SELECT o.row_at FROM old o)) AND h.handled_at < until
            RETURNING 1
    )
    SELECT (SELECT count(*) FROM gone), (SELECT count(*) = batch FROM old), (SELECT max(o.handled_at) FROM old o)
      INTO deleted, more, last.place;
    -- The whole day must be older.
    WITH old AS MATERIALIZED (
        SELECT n.ctid AS row_at FROM inbox_newest n
         WHERE n.applied_on < until::date
         ORDER BY n.applied_on LIMIT (SELECT batch) FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM inbox_newest n WHERE n.ctid = ANY (ARRAY(SELECT o.row_at FROM old o)) AND n.applied_on < until::date
            RETURNING 1
    )
    SELECT count(*) INTO newest FROM gone;
    deleted := deleted + newest;
    UPDATE inbox_retention r
       SET cut_off = until, ran_at = at_once, place = CASE WHEN more THEN last.place ELSE '-infinity' END,
           deleted = r.deleted + inbox_clean.deleted, halted_at = NULL, halt_reason = '';
    more := more OR newest = batch;
END
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION inbox_clean(interval, interval, integer, interval, timestamptz) IS
    'Deletes one batch of what was handled longer ago than keep, unless that is more than time alone explains.';

SELECT inbox_seal();
UPDATE inbox_meta SET schema_version = 3;

-- +goose Down
DROP FUNCTION inbox_clean(interval, interval, integer, interval, timestamptz);
DROP TABLE inbox_retention;
UPDATE inbox_meta SET schema_version = 2;
