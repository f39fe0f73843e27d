-- $1 the cut-off. How many dedupe keys are older, also those whose events are still there.
SELECT count(*) FROM {schema}.outbox_dedupe k WHERE k.created_at < $1::timestamptz
