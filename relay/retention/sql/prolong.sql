-- $1 the kind, $2 who is at it, $3 for how long, in milliseconds, $4 how many rows went, $5 how far it came; null: it
-- remembers no place. Changes nothing if somebody else is at it by now.
UPDATE {schema}.outbox_retention r
   SET deleted = r.deleted + $4::bigint, work_until = clock_timestamp() + $3::bigint * interval '1 millisecond',
       place = coalesce($5::bigint, r.place)
 WHERE r.kind = $1::text AND r.worker = $2::text::uuid
