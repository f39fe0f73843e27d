-- Whether a relay that is alive can publish events of the type $1: it knows the type, or has the name $2 of those that
-- learn every type.
SELECT EXISTS (
    SELECT FROM {schema}.outbox_relays r
     WHERE r.ended_at IS NULL
       AND (r.name = $2::text
            OR EXISTS (SELECT FROM {schema}.outbox_known k WHERE k.relay = r.id AND k.event_type = $1::text))
       AND (SELECT b.until FROM {schema}.outbox_beats b WHERE b.relay = r.id ORDER BY b.number DESC LIMIT (SELECT 1))
           >= clock_timestamp()
)
