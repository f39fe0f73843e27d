-- Counts what {found} finds, by type: how many, the oldest and newest, and how many of them are erased, where that is
-- asked for: it is looked up for each.
SELECT f.event_type, count(*), min(f.created_at), max(f.created_at), {erased}
  FROM ({found}) AS f(place, id, seq, lane, namespace, event_type, aggregate_type, aggregate_id, tenant, state,
       created_at, published_at, since, due, attempts, last_error, erased, payload, headers, dedupe_key)
 GROUP BY f.event_type
