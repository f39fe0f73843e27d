-- Events that are held so, {kinds}, and dead ones where {dead}, which all have a dead letter: both tables are small.
-- At most {window} of each; those below the id {below}.
SELECT {columns}, 0 AS place
  FROM (SELECT h.lane, h.seq
          FROM {schema}.outbox_lanes l CROSS JOIN unnest({kinds}::smallint[]) k(kind) CROSS JOIN LATERAL (
               SELECT h.lane, h.seq FROM {schema}.outbox_held h
                WHERE h.lane = l.lane AND h.kind = k.kind
                ORDER BY h.since, h.seq LIMIT (SELECT {window}::integer)) h
         WHERE l.layout = 1 LIMIT (SELECT {window}::integer)) held
 CROSS JOIN LATERAL (
       SELECT e.* FROM (
           SELECT {columns} FROM {schema}.outbox_events e WHERE e.lane = held.lane AND e.seq = held.seq OFFSET 0) e) e
 WHERE e.id < {below}::text::uuid
UNION ALL
SELECT {columns}, 0 AS place
  FROM (SELECT DISTINCT d.event_id FROM (
            SELECT d.event_id FROM {schema}.outbox_dlq d
             WHERE {dead}::boolean ORDER BY d.id DESC LIMIT (SELECT {window}::integer)) d) letter
 CROSS JOIN LATERAL (
       SELECT e.* FROM (
           SELECT {columns} FROM {schema}.outbox_events e WHERE e.id = letter.event_id OFFSET 0) e) e
 WHERE e.state = 5 AND e.id < {below}::text::uuid
