-- $1 relay, $2 name, $3 version, $4 known types, $5 lease in microseconds
INSERT INTO {schema}.outbox_relays AS r (id, name, version, known_types, alive_until)
VALUES ($1::uuid, $2::text, $3::text, $4::text[], clock_timestamp() + $5::bigint * interval '1 microsecond')
ON CONFLICT (id) DO UPDATE SET name = excluded.name, version = excluded.version, known_types = excluded.known_types,
   alive_until = excluded.alive_until
