INSERT INTO bench.bare (payload) SELECT p::json FROM unnest($1::text[]) p
