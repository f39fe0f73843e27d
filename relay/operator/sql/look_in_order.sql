-- Before a look that stops when it has found enough: the index has the order, and the planner must not take all there
-- is and sort it, which it would where the order of the index is not that of the table.
SELECT set_config('enable_sort', 'off', true), set_config('enable_bitmapscan', 'off', true)
