-- Which types of events are held, and how many, at most $1 looked at and $2 rows.
SELECT h.event_type, h.aggregate_type, count(*)
  FROM (SELECT h.event_type, h.aggregate_type
          FROM {schema}.outbox_lanes l JOIN {schema}.outbox_meta m ON m.lane_layout = l.layout CROSS JOIN LATERAL (
               SELECT h.event_type, h.aggregate_type FROM {schema}.outbox_held h
                WHERE h.lane = l.lane ORDER BY h.seq LIMIT (SELECT $1::integer)) h
         LIMIT (SELECT $1::integer)) h
 GROUP BY h.event_type, h.aggregate_type ORDER BY count(*) DESC, h.event_type LIMIT (SELECT $2::integer)
