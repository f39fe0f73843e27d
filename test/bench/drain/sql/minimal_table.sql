CREATE TABLE bench.minimal_events (
    seq          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    published_at timestamptz,
    payload      json NOT NULL
)
