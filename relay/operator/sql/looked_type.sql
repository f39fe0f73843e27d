-- Events of one type, {type}, the newest first, by the optional index on (event_type, seq): those below the number
-- {below}, at most {window}.
SELECT {columns}, row_number() OVER (ORDER BY e.seq DESC) AS place
  FROM {schema}.outbox_events e
 WHERE e.event_type = {type}::text AND e.seq < {below}::bigint
 ORDER BY e.seq DESC LIMIT (SELECT {window}::integer)
