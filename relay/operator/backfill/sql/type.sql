-- The name of the type $1, without a length. NULL instead of -1 would give the standard's names, and their lengths: a
-- character has one letter, and a bit is one.
SELECT pg_catalog.format_type($1::bigint::oid, -1)
