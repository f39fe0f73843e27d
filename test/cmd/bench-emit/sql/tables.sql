-- The application's own tables, and the bare INSERT's. Autovacuum is off everywhere, also for the
-- outbox: it would run in somebody's block.
CREATE SCHEMA bench;
CREATE TABLE bench.account (
    id      text   PRIMARY KEY,
    balance bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 70, autovacuum_enabled = off);
CREATE TABLE bench.orders (
    id         uuid        PRIMARY KEY,
    account_id text        NOT NULL,
    amount     bigint      NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
) WITH (autovacuum_enabled = off);
CREATE TABLE bench.bare (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    payload json   NOT NULL
) WITH (autovacuum_enabled = off);
