-- Whether a relay that is alive can publish events of the type $1.
SELECT EXISTS (
    SELECT FROM {schema}.outbox_known k
      JOIN {schema}.outbox_relays r ON r.id = k.relay AND r.ended_at IS NULL
     WHERE k.event_type = $1::text
       AND (SELECT b.until FROM {schema}.outbox_beats b WHERE b.relay = r.id ORDER BY b.number DESC LIMIT 1)
           > clock_timestamp()
)
