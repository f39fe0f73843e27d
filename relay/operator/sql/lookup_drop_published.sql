DROP FUNCTION IF EXISTS {schema}.outbox_id_at(timestamptz)
