-- $1 the run; of each row $2 its minute, $3 the topic, $4 to $10 counts, $11 latencies, $12 pending, $13 oldest.
INSERT INTO {schema}.outbox_minutes (relay, minute, topic, arrived, published, rejected, terminal, topic_fault, unknown,
                                     died, latencies, pending, oldest)
SELECT $1::uuid, r.minute, r.topic, r.arrived, r.published, r.rejected, r.terminal, r.topic_fault, r.unknown, r.died,
       r.latencies::bigint[], r.pending, r.oldest
  FROM unnest($2::timestamptz[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
              $9::bigint[], $10::bigint[], $11::text[], $12::bigint[], $13::float8[])
       r(minute, topic, arrived, published, rejected, terminal, topic_fault, unknown, died, latencies, pending, oldest)
ON CONFLICT DO NOTHING -- the answer to the first time was lost
