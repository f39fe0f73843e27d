INSERT INTO bench.bare (payload)
SELECT ('{"version":1,"eventId":"' || gen_random_uuid() || '","filler":"' || encode(sha512(n::text::bytea), 'hex')
       || encode(sha512((-n)::text::bytea), 'hex') || '"}')::json
  FROM generate_series(1, $1::int) n
