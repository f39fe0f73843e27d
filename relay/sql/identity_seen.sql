-- $1 the system identifier, $2 the timeline, $3 how old the last sign of life must be, in microseconds: of a whole
-- fleet one relay writes. On any other server it answers nothing: behind a pooler this may be one.
WITH here AS MATERIALIZED (
    SELECT FROM pg_control_system() s
     WHERE s.system_identifier = $1::bigint
       AND ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer = $2::integer
), written AS (
    UPDATE {schema}.outbox_identity h SET seen_at = clock_timestamp() FROM here
     WHERE h.system_identifier = $1::bigint AND h.timeline = $2::integer
       AND h.seen_at < clock_timestamp() - $3::bigint * interval '1 microsecond'
)
SELECT clock_timestamp() FROM here
