-- What the API keeps. Its outbox is a migration set of its own beside it.
CREATE TABLE stores (
    id         uuid PRIMARY KEY,
    name       text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- revision counts the changes of state: readers of the events can compare it with what they have.
CREATE TABLE orders (
    id                uuid PRIMARY KEY,
    checkout_group_id uuid NOT NULL,
    buyer_store_id    uuid NOT NULL REFERENCES stores,
    vendor_store_id   uuid NOT NULL REFERENCES stores,
    currency          text NOT NULL,
    total_cents       bigint NOT NULL,
    state             text NOT NULL DEFAULT 'pending'
                      CHECK (state IN ('pending', 'accepted', 'shipped', 'delivered', 'canceled', 'expired')),
    revision          bigint NOT NULL DEFAULT 1,
    created_at        timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE order_lines (
    id               uuid PRIMARY KEY,
    order_id         uuid NOT NULL REFERENCES orders,
    product_id       text NOT NULL,
    quantity         int NOT NULL CHECK (quantity > 0),
    unit_price_cents bigint NOT NULL,
    state            text NOT NULL DEFAULT 'reserved' CHECK (state IN ('reserved', 'packed', 'released'))
);
CREATE INDEX order_lines_order ON order_lines (order_id);

CREATE TABLE ledger_entries (
    id           uuid PRIMARY KEY,
    order_id     uuid NOT NULL REFERENCES orders,
    kind         text NOT NULL CHECK (kind IN ('payment', 'payout')),
    currency     text NOT NULL,
    amount_cents bigint NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    UNIQUE (order_id, kind)
);

CREATE TABLE licenses (
    id         uuid PRIMARY KEY,
    store_id   uuid NOT NULL REFERENCES stores,
    number     text NOT NULL,
    status     text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'verified', 'rejected')),
    reason     text,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE media (
    id           uuid PRIMARY KEY,
    store_id     uuid NOT NULL REFERENCES stores,
    kind         text NOT NULL,
    content_type text NOT NULL,
    bytes        bigint NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE ads (
    id                 uuid PRIMARY KEY,
    store_id           uuid NOT NULL REFERENCES stores,
    title              text NOT NULL,
    daily_budget_cents bigint NOT NULL,
    state              text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'paused', 'expired')),
    created_at         timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE ad_rollups (
    ad_id       uuid NOT NULL REFERENCES ads,
    day         date NOT NULL,
    impressions bigint NOT NULL,
    clicks      bigint NOT NULL,
    spent_cents bigint NOT NULL,
    PRIMARY KEY (ad_id, day)
);
