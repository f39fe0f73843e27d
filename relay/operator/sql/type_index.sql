-- Whether there is an index by event type and number that can be used. $1 is the table.
SELECT EXISTS (
    SELECT FROM pg_catalog.pg_index i
     WHERE i.indrelid = $1::text::regclass AND i.indisvalid AND i.indisready AND i.indpred IS NULL
       AND i.indnkeyatts = 2
       AND (SELECT array_agg(a.attname::text ORDER BY k.place)
              FROM unnest(i.indkey::smallint[]) WITH ORDINALITY k(attnum, place)
              JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum)
           = ARRAY['event_type', 'seq'])
