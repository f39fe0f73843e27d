-- $1 the kind, $2 who is at it, $3 the cut-off: it is plausible, and what is older goes from now on.
UPDATE {schema}.outbox_retention r
   SET cut_off = $3::timestamptz, ran_at = clock_timestamp(), halted_at = NULL, halt_reason = ''
 WHERE r.kind = $1::text AND r.worker = $2::text::uuid
