-- Everything that the tables hold, one line a row, in the words of model.dump.
SELECT line FROM (
    SELECT 1 AS part, seq AS place,
           format('event %s %s lane %s state %s attempts %s far %s error ', seq, id,
           {schema}.outbox_lane(namespace, aggregate_type, aggregate_id), state,
                  attempt_count, CASE WHEN state = 1 AND next_attempt_at > clock_timestamp() + interval '1 hour'
                  THEN 'true' ELSE 'false' END)
           || '"' || coalesce(last_error, '') || '"' AS line
      FROM {schema}.outbox_events
    UNION ALL
    SELECT 2, id,
           format('letter %s %s seq %s attempts %s blocking %s topic "%s" reason "%s" detail "%s" payload %s headers '
               '%s',
                         id, event_id, event_seq, attempts, CASE WHEN blocking THEN 'true' ELSE 'false' END, topic,
                         error_reason, error_detail, payload_json::text, headers::text)
      FROM {schema}.outbox_dlq
    UNION ALL
    SELECT 3, lane, format('lane %s owner %s token %s floor %s needs [%s] crashes %s noted %s %s', lane,
                           coalesce(owner, '00000000-0000-0000-0000-000000000000'),
                           coalesce(token, '00000000-0000-0000-0000-000000000000'), floor,
                           (SELECT string_agg(need, ' ' ORDER BY need) FROM unnest(needs) need), crash_count,
                           coalesce(marked_event, '00000000-0000-0000-0000-000000000000'), marked_count)
      FROM {schema}.outbox_lanes
     WHERE layout = 1
       AND (owner IS NOT NULL OR floor > 0 OR needs <> '{}' OR crash_count > 0 OR marked_event IS NOT NULL)
    UNION ALL
    SELECT 4, row_number() OVER (ORDER BY relay, topic),
           format('route %s "%s" paused %s error "%s"', relay, topic, CASE WHEN paused THEN 'true' ELSE 'false' END,
           error)
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
) lines ORDER BY part, place
