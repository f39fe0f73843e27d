-- Payload, headers and dedupe key of the event $3, for the actor $1 with the reason $2: the function logs it as the
-- action $4.
SELECT c.payload_json::text, c.headers::text, coalesce(c.dedupe_key, '')
  FROM {schema}.outbox_look($1::text, $2::text, $3::text::uuid, $4::text::uuid) c
