INSERT INTO bench.orders (id, account_id, amount)
SELECT gen_random_uuid(), a.id, 100
  FROM generate_series(1, $1::int) n
  JOIN (SELECT id, row_number() OVER (ORDER BY id) - 1 AS place FROM bench.account) a
       ON a.place = n * 7919::bigint % $2::bigint
