-- The next {limit} rows of a query behind {after}, in the order of their keys; whether the text of the key is read as
-- the same key, and behind the one before, {onward}, since the next rows are asked for by it; and whether the key is
-- the row's own. {columns} are the parts of an event.
SELECT q.key::text, {onward}, coalesce(q.key > lag(q.key) OVER (ORDER BY q.key), true), {columns} FROM (
{query}
) q WHERE {after} ORDER BY q.key LIMIT {limit}
