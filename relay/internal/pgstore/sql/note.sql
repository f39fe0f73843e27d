-- $1 relay, $2 its token, $3 lane, $4 token of its acquisition, $5 the event that is sent next. Another event that
-- relays have died with stays marked until it is settled, or until its count is zero: then only the sign is taken from
-- it that it is being sent.
WITH own AS MATERIALIZED (
    SELECT FROM {schema}.outbox_relays r WHERE r.id = $1::uuid AND r.token = $2::uuid AND r.ended_at IS NULL
       AND r.lanes @> ARRAY[$3::smallint]
       AND EXISTS (SELECT FROM {schema}.outbox_lanes l
                    WHERE l.layout = 1 AND l.lane = $3::smallint AND l.token = $4::uuid)
       FOR KEY SHARE OF r
)
INSERT INTO {schema}.outbox_markers AS m (layout, lane, event_id, token)
SELECT 1, $3::smallint, $5::uuid, $4::uuid FROM own
ON CONFLICT (layout, lane) DO UPDATE
   SET event_id = CASE WHEN m.deaths > 0 THEN m.event_id ELSE excluded.event_id END,
       token = CASE WHEN m.deaths = 0 OR m.event_id = excluded.event_id THEN excluded.token END
