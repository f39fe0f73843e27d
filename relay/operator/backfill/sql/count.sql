-- How many rows a query has behind {after}, how many keys, and how many rows without one.
SELECT count(*), count(DISTINCT q.key), count(*) FILTER (WHERE q.key IS NULL) FROM (
{query}
) q WHERE {after} OR q.key IS NULL
