-- $1 how long to keep, $2 the horizon, both in seconds; $3 how many rows, $4 the longest step in seconds, $5 a person's
-- word.
SELECT c.deleted, c.more, coalesce(c.halt_reason, '')
  FROM {schema}.inbox_clean($1::text::bigint * interval '1 second', $2::text::bigint * interval '1 second',
                            $3::text::integer, $4::text::bigint * interval '1 second', $5::text::timestamptz) c
