-- Until the transaction ends, values have the same texts in every session, and exact ones. The abbreviations of zones,
-- which other styles of dates have, name several: 'IST' is India's, Israel's and Ireland's.
SELECT set_config('TimeZone', 'UTC', true), set_config('DateStyle', 'ISO', true),
       set_config('IntervalStyle', 'postgres', true), set_config('extra_float_digits', '1', true),
       set_config('bytea_output', 'hex', true), set_config('lc_monetary', 'C', true)
