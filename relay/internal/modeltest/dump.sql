-- Everything that the tables hold, one line a row, in the words of model.dump.
SELECT line FROM (
    SELECT 1 AS part, e.seq AS place,
           format('event %s %s lane %s state %s attempts %s far %s error ', e.seq, e.id, e.lane,
                  coalesce(h.kind, e.state), e.attempt_count,
                  CASE WHEN h.due > clock_timestamp() + interval '1 hour' THEN 'true' ELSE 'false' END)
           || '"' || coalesce(e.last_error, '') || '"'
           || CASE WHEN (e.state = 1) <> (h.seq IS NOT NULL) THEN ' but outbox_held says otherwise' ELSE '' END
           || CASE WHEN (e.state = 6) <> (e.published_at IS NOT NULL) THEN ' but published_at is wrong' ELSE '' END
           || CASE WHEN (h.namespace, h.event_type, h.aggregate_type, h.aggregate_id)
                        <> (e.namespace, e.event_type, e.aggregate_type, e.aggregate_id)
                     OR (h.kind = 1) <> (h.due IS NOT NULL) THEN ' but the held row is another''s' ELSE '' END AS line
      FROM {schema}.outbox_events e LEFT JOIN {schema}.outbox_held h ON h.lane = e.lane AND h.seq = e.seq
    UNION ALL
    SELECT 1, h.seq, format('held %s lane %s without its event', h.seq, h.lane)
      FROM {schema}.outbox_held h LEFT JOIN {schema}.outbox_events e ON e.lane = h.lane AND e.seq = h.seq
     WHERE e.seq IS NULL
    UNION ALL
    SELECT 2, id,
           format('letter %s %s seq %s attempts %s blocking %s topic "%s" reason "%s" detail "%s" payload %s headers '
               '%s',
                         id, event_id, event_seq, attempts, CASE WHEN blocking THEN 'true' ELSE 'false' END, topic,
                         error_reason, error_detail, payload_json::text, headers::text)
      FROM {schema}.outbox_dlq
    UNION ALL
    SELECT 3, l.lane, format('lane %s owner %s token %s floor %s swept %s needs [%s] crashed %s %s noted %s %s', l.lane,
                             coalesce(l.owner, '00000000-0000-0000-0000-000000000000'),
                             coalesce(l.token, '00000000-0000-0000-0000-000000000000'), l.floor, l.swept,
                             (SELECT string_agg(need, ' ' ORDER BY need) FROM unnest(l.needs) need),
                             CASE WHEN l.crashed THEN 'true' ELSE 'false' END, l.crash_count,
                             coalesce(m.event_id, '00000000-0000-0000-0000-000000000000'), coalesce(m.deaths, 0))
      FROM {schema}.outbox_lanes l LEFT JOIN {schema}.outbox_markers m ON m.layout = l.layout AND m.lane = l.lane
     WHERE l.layout = 1
       AND (l.owner IS NOT NULL OR l.floor > 0 OR l.swept > 0 OR l.needs <> '{}' OR l.crashed OR m.event_id IS NOT NULL)
    UNION ALL
    SELECT 3, 1000 + row_number() OVER (ORDER BY r.id),
           format('relay %s token %s ended %s holds [%s] beat %s expired %s told [%s]', r.id, r.token,
                  CASE WHEN r.ended_at IS NULL THEN 'false' ELSE 'true' END, array_to_string(r.lanes, ' '), b.number,
                  CASE WHEN b.until < clock_timestamp() THEN 'true' ELSE 'false' END,
                  (SELECT string_agg(format('%s:%s:%s:%s:%s', t.lane, t.floor, t.swept,
                          CASE WHEN t.recovered THEN 'true' ELSE 'false' END,
                          (SELECT string_agg(n.type, ',' ORDER BY n.type)
                             FROM unnest(b.need_lanes, b.need_types) n(lane, type) WHERE n.lane = t.lane)), ' '
                          ORDER BY t.place)
                     FROM unnest(b.lanes, b.floors, b.swept, b.recovered) WITH ORDINALITY
                          t(lane, floor, swept, recovered, place)))
      FROM {schema}.outbox_relays r LEFT JOIN LATERAL (
        SELECT * FROM {schema}.outbox_beats b WHERE b.relay = r.id ORDER BY b.number DESC LIMIT 1) b ON true
    UNION ALL
    SELECT 4, row_number() OVER (ORDER BY relay, topic),
           format('route %s "%s" paused %s by operator %s error "%s"', relay, topic,
                  CASE WHEN paused THEN 'true' ELSE 'false' END,
                  CASE WHEN by_operator THEN 'true' ELSE 'false' END, error)
      FROM {schema}.outbox_topics
    UNION ALL
    SELECT 5, row_number() OVER (ORDER BY action_id, event_id),
           format('action %s %s of %s letter %s actor "%s" reason "%s" target "%s"', action_id, verb,
                  CASE WHEN target IS NULL THEN event_id ELSE '00000000-0000-0000-0000-000000000000' END,
                       coalesce(dlq_id, 0), actor, reason, target)
      FROM {schema}.outbox_actions
    UNION ALL
    SELECT 6, row_number() OVER (ORDER BY scope, name),
           format('pause %s "%s" actor "%s" reason "%s"', scope, name, actor, reason)
      FROM {schema}.outbox_pauses
    UNION ALL
    SELECT 7, row_number() OVER (ORDER BY topic),
           format('limit "%s" %s actor "%s" reason "%s"', topic, rate, actor, reason)
      FROM {schema}.outbox_limits
    UNION ALL
    SELECT 8, id,
           format('request %s of %s for %s lane %s seq %s topic "%s" far %s %s taken %s by %s attempts %s error "%s"',
                  id, action_id, event_id, lane, event_seq, topic,
                  CASE WHEN due_at > clock_timestamp() + interval '500 seconds' THEN 'true' ELSE 'false' END,
                  CASE WHEN delivered_at IS NOT NULL THEN 'delivered' WHEN failed_at IS NOT NULL THEN 'failed'
                       WHEN canceled_at IS NOT NULL THEN 'canceled' ELSE 'open' END,
                  taken, coalesce(taken_by, '00000000-0000-0000-0000-000000000000'), attempts, last_error)
      FROM {schema}.outbox_requests
) lines ORDER BY part, place
