-- What the consumers keep. Their inbox is a migration set of its own beside it. They know stores, licences and orders
-- from events alone, so nothing here refers to the API's tables.

-- event_id says which event a notice came from. That there is one notice for an event is the inbox's work: a unique
-- index here would only hide it when the inbox fails.
CREATE TABLE notifications (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    type       text NOT NULL,
    audience   text NOT NULL CHECK (audience IN ('admin', 'store')),
    store_id   uuid NOT NULL,
    license_id uuid NOT NULL,
    status     text NOT NULL,
    reason     text,
    link       text NOT NULL,
    event_id   uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX notifications_audience ON notifications (audience, store_id, id);

-- The first columns are facts of order_created. An order whose first event has not come yet is there without them.
-- applied counts the changes of state that were applied: as many as revision says, if all of them came in order.
CREATE TABLE order_read_model (
    order_id        uuid PRIMARY KEY,
    buyer_store_id  uuid,
    vendor_store_id uuid,
    currency        text,
    total_cents     bigint,
    state           text,
    revision        bigint,
    applied         bigint NOT NULL DEFAULT 0,
    updated_at      timestamptz NOT NULL DEFAULT now()
);
