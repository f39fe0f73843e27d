-- What columns a query has.
SELECT q.* FROM (
{query}
) q LIMIT 0
