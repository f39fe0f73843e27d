-- What is older than 72 hours goes, 5,000 rows at a time: by the database's clock, which is the one that everybody has,
-- and as now(), by which an index can be read. How many there were, whoever deleted them, tells whether there are more.
WITH old AS MATERIALIZED (
    SELECT o.minute, o.topic, o.relay FROM {schema}.outbox_minutes o
     WHERE o.minute < now() - interval '72 hours' ORDER BY o.minute, o.topic, o.relay LIMIT 5000
), gone AS (
    DELETE FROM {schema}.outbox_minutes m USING old o
     WHERE m.minute = o.minute AND m.topic = o.topic AND m.relay = o.relay
)
SELECT count(*) FROM old
