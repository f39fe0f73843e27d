-- $1 tokens
WITH own AS MATERIALIZED (
    SELECT lane FROM {schema}.outbox_lanes WHERE layout = 1 AND token = ANY($1::uuid[]) ORDER BY lane FOR NO KEY UPDATE
)
UPDATE {schema}.outbox_lanes l SET owner = NULL, token = NULL, lease_until = NULL
  FROM own WHERE l.layout = 1 AND l.lane = own.lane
