INSERT INTO {table} (payload) SELECT payload_json FROM bench.{template} ORDER BY id OFFSET {from} LIMIT {events}
