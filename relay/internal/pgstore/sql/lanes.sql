SELECT lane, owner, token, needs FROM {schema}.outbox_lanes WHERE layout = 1 ORDER BY lane
