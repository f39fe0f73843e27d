-- What operators did about the event $1, the newest first, at most $2.
SELECT a.action_id::text, a.verb, a.actor, a.session_role::text, a.reason, a.acted_at
  FROM {schema}.outbox_actions a WHERE a.event_id = $1::text::uuid
 ORDER BY a.acted_at DESC, a.id DESC LIMIT (SELECT $2::integer)
