INSERT INTO {table} (payload)
SELECT payload_json FROM bench.{template} WHERE n >= {from} AND n < {from} + {events} ORDER BY n
