-- What retention has deleted of events: up to when they were published, and how many.
SELECT r.cut_off, r.deleted FROM {schema}.outbox_retention r WHERE r.kind = 'published'
