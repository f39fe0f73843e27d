-- $1 the kind, $2 who was at it.
UPDATE {schema}.outbox_retention r SET worker = NULL, work_until = NULL WHERE r.kind = $1::text
    AND r.worker = $2::text::uuid
