SELECT count(*), coalesce(sum(lanes), 0)::int, coalesce(max(lanes) - min(lanes), 0)::int
  FROM (SELECT count(*) AS lanes FROM {schema}.outbox_lane_status WHERE lease_until > clock_timestamp()
       GROUP BY owner) AS owners
