-- The newest events by their ids, whose order is that of time: {least} and {below} are the ids between which they are,
-- {window} how many. The answer comes in the order of the index, so a page that is full ends the look.
SELECT {columns}, row_number() OVER (ORDER BY e.id DESC) AS place
  FROM {schema}.outbox_events e
 WHERE e.id >= {least}::text::uuid AND e.id < {below}::text::uuid
 ORDER BY e.id DESC LIMIT (SELECT {window}::integer)
