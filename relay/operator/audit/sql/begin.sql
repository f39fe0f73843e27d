-- Begins a look: $1 is the longest time of a statement. It answers what time it is. All that follows is bounded and has
-- an index: the planner is kept from reading whole tables by wrong statistics, from compiling, and from more than one
-- process.
SELECT clock_timestamp()
  FROM (SELECT set_config('statement_timeout', $1::text, true), set_config('enable_seqscan', 'off', true),
               set_config('jit', 'off', true), set_config('max_parallel_workers_per_gather', '0', true)
        OFFSET 0) settings
