-- How many events retention has deleted.
SELECT coalesce(sum(p.events), 0)::bigint FROM {schema}.outbox_pruned p
