-- Which server this is, and since when. A server that recovers because one of its backends was killed keeps the time of
-- its start, and sets its statistics anew. Both as numbers, because as text they depend on the session. Whoever resets
-- the statistics of the background writer makes relays take their lanes anew; what is acknowledged and not settled then
-- is sent again.
concat_ws('.', (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint,
               (extract(epoch FROM pg_stat_get_bgwriter_stat_reset_time()) * 1000000)::bigint)
