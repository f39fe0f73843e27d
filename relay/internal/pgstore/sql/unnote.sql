-- $1 relay, $2 its token, $3 lane, $4 token of its acquisition: what it had marked is not being sent any more; $5 tells
-- that a publish of it was answered, which takes one death off its count.
WITH own AS MATERIALIZED (
    SELECT r.id FROM {schema}.outbox_relays r WHERE r.id = $1::uuid AND r.token = $2::uuid AND r.ended_at IS NULL
       AND r.lanes @> ARRAY[$3::smallint]
       AND EXISTS (SELECT FROM {schema}.outbox_lanes l
                    WHERE l.layout = 1 AND l.lane = $3::smallint AND l.token = $4::uuid)
       FOR KEY SHARE OF r
), kept AS (
    UPDATE {schema}.outbox_markers m
       SET deaths = m.deaths - ($5::boolean AND m.token IS NOT DISTINCT FROM $4::uuid)::integer, token = NULL
      FROM own
     WHERE m.layout = 1 AND m.lane = $3::smallint
       AND m.deaths > ($5::boolean AND m.token IS NOT DISTINCT FROM $4::uuid)::integer
), gone AS (
    DELETE FROM {schema}.outbox_markers m USING own
     WHERE m.layout = 1 AND m.lane = $3::smallint
       AND m.deaths <= ($5::boolean AND m.token IS NOT DISTINCT FROM $4::uuid)::integer
)
SELECT FROM own
