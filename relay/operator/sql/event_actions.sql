-- What operators did about the event $1, the newest first, at most $2. Looks at its payload give way to what was
-- decided: however often somebody has looked, who has discarded it must be seen.
SELECT a.action_id::text, a.verb, a.actor, a.session_role::text, a.reason, a.acted_at
  FROM (SELECT a.* FROM {schema}.outbox_actions a WHERE a.event_id = $1::text::uuid
         ORDER BY a.verb = 'look', a.acted_at DESC, a.id DESC LIMIT (SELECT $2::integer)) a
 ORDER BY a.acted_at DESC, a.id DESC
