-- The lanes of the layout in force and their floors, at or below which nothing is ready. $1 is the table of events:
-- whether this role may read all that a relay reads of an event.
SELECT array_agg(l.lane ORDER BY l.lane), array_agg(l.floor ORDER BY l.lane), (
           SELECT bool_and(pg_catalog.has_column_privilege($1::text, c.name, 'SELECT'))
             FROM unnest('{payload_json,headers,dedupe_key}'::text[]) c(name))
  FROM {schema}.outbox_lane_status l JOIN {schema}.outbox_meta m ON m.lane_layout = l.layout
