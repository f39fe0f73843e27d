-- $1 the kind, $2 who refuses, $3 why.
UPDATE {schema}.outbox_retention r SET halted_at = clock_timestamp(), halt_reason = $3::text
 WHERE r.kind = $1::text AND r.worker = $2::text::uuid
