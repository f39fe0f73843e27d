-- {lanes} that are not the relay's any more, by the statement's own snapshot; none where no relay asks. What the next
-- owner has done would else be taken for the whole.
ARRAY(SELECT a.lane FROM unnest({lanes}::smallint[]) a(lane) WHERE {relay}::uuid IS NOT NULL
      EXCEPT SELECT o.lane FROM {schema}.outbox_relays r CROSS JOIN unnest(r.lanes) o(lane)
              WHERE r.id = {relay}::uuid AND r.token = {token}::uuid AND r.ended_at IS NULL)
