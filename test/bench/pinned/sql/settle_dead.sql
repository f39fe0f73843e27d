-- $1 the number above which all that is ready is settled: in each lane the index leads there.
UPDATE public.outbox_events e SET state = 6, published_at = clock_timestamp()
  FROM (SELECT lane FROM public.outbox_lanes) l
 WHERE e.lane = l.lane AND e.seq > $1 AND e.state = 0
