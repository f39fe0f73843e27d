SELECT lane, owner, lease_until IS NULL OR lease_until < clock_timestamp() AS free, needs FROM {schema}.outbox_lanes
 WHERE layout = 1 ORDER BY lane
