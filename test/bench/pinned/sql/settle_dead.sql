UPDATE public.outbox_events SET state = 6, published_at = clock_timestamp() WHERE state = 0
