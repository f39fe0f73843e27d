-- The next {limit} rows of a query behind {after}, in the order of their keys; whether the text of the key is behind it
-- as well, {onward}, since the next ones are asked for by it. {columns} are the parts of an event.
SELECT q.key::text, {onward}, {columns} FROM (
{query}
) q WHERE {after} ORDER BY q.key LIMIT {limit}
