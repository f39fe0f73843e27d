SELECT seq, id, event_type, aggregate_type, aggregate_id, payload_json
  FROM {schema}.outbox_events WHERE id > $1 ORDER BY id LIMIT $2
