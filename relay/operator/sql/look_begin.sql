-- Begins a look: $1 is the longest time of a statement, unless the session has a shorter one. It answers what time it
-- is. All that follows is bounded and has an index, so the planner is kept from reading whole tables by wrong
-- statistics, from compiling, and from more than one process: whoever looks shall be felt by nobody.
SELECT clock_timestamp()
  FROM (SELECT set_config('statement_timeout', CASE
                   WHEN current_setting('statement_timeout')::interval BETWEEN interval '1 ms' AND $1::text::interval
                   THEN current_setting('statement_timeout') ELSE $1::text END, true),
               set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true),
               set_config('max_parallel_workers_per_gather', '0', true)
        OFFSET 0) settings
