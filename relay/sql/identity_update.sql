-- $1 the system identifier, $2 the timeline of this server; $3 and $4 those that were found in the row, null: no
-- row. If somebody else was faster there is nothing to do.
INSERT INTO {schema}.outbox_identity AS h (system_identifier, timeline) VALUES ($1::bigint, $2::integer)
ON CONFLICT (singleton) DO UPDATE
   SET system_identifier = excluded.system_identifier, timeline = excluded.timeline, since = excluded.since,
       seen_at = excluded.seen_at
 WHERE h.system_identifier = $3::bigint AND h.timeline = $4::integer
