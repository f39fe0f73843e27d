"""Emit events from Python with psycopg 3 and nothing but SQL.

DATABASE_URL says where; OUTBOX_SCHEMA where the outbox is installed (default: public); PGBOUNCER=1
that the address is a PgBouncer in transaction mode. Prints one line and fails if anything differs
from what its comments say.
"""
import json
import os
import uuid

import psycopg
from psycopg import sql

URL = os.environ["DATABASE_URL"]
# In transaction mode every transaction may get another server connection, so a statement that was
# prepared on one is missing on the next. None turns psycopg's automatic prepare off.
OPTIONS = {"autocommit": True, "prepare_threshold": None if os.environ.get("PGBOUNCER") else 5}

# Names are qualified, because a pooler does not keep search_path for a client.
SCHEMA = sql.Identifier(os.environ.get("OUTBOX_SCHEMA", "public"))
CREATE_ORDERS = sql.SQL("CREATE TABLE IF NOT EXISTS {}.example_orders (id text PRIMARY KEY)").format(SCHEMA)
INSERT_ORDER = sql.SQL("INSERT INTO {}.example_orders (id) VALUES (%s)").format(SCHEMA)
EMIT = sql.SQL("""
    SELECT id, created FROM {}.outbox_emit('order_created', 'order', %(order)s, %(data)s::json,
        tenant_id => %(tenant)s, dedupe_key => %(key)s, actor => %(actor)s::json, headers => %(headers)s::json)
    """).format(SCHEMA)

# Usually json.dumps(...). Here with spaces, escapes and an order of keys that must all survive.
DATA = r'{"total": 12.50,  "currency":"EUR","zeta":1, "alpha":2, "note":"Grüße, 世界 🚀 \"[1:2]\" \u00e9"}'


def emit(conn, order, data=DATA, tenant=None, key=None, actor=None, headers=None):
    """Write one event in the transaction that conn is in; returns its id and whether it is new."""
    return conn.execute(EMIT, {
        "order": order, "data": data, "tenant": tenant, "key": key,
        "actor": actor and json.dumps(actor), "headers": headers and json.dumps(headers),
    }).fetchone()


def rejected(conn, sqlstate, **event):
    """Emit behind a savepoint, so that the rejection does not end the transaction around it."""
    try:
        with conn.transaction():  # inside a transaction this is a savepoint
            emit(conn, **event)
    except psycopg.Error as error:
        assert error.sqlstate == sqlstate, error
        return True
    raise AssertionError(f"expected SQLSTATE {sqlstate}")


def main():
    run = uuid.uuid4().hex
    created = deduped = rejections = 0
    with psycopg.connect(URL, **OPTIONS) as conn, psycopg.connect(URL, **OPTIONS) as other:
        conn.execute(CREATE_ORDERS)

        # The order and its event commit together.
        with conn.transaction():
            conn.execute(INSERT_ORDER, [f"{run}-1"])
            first, new = emit(conn, f"{run}-1", actor={"type": "user", "id": "7", "name": "Zoë"},
                              headers={"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"})
            created += new

        # A rollback leaves neither.
        with conn.transaction(force_rollback=True):
            conn.execute(INSERT_ORDER, [f"{run}-rolled-back"])
            emit(conn, f"{run}-rolled-back")

        # A dedupe key makes a second try harmless, on this connection and on any other.
        with conn.transaction():
            conn.execute(INSERT_ORDER, [f"{run}-2"])
            keyed, new = emit(conn, f"{run}-2", key=f"{run}/2")
            created += new
        for retry in conn, other:
            with retry.transaction():
                again, new = emit(retry, f"{run}-2", key=f"{run}/2")
            assert again == keyed and not new
            deduped += 1

        # Other content under a used key is rejected, and so is a key that belongs to another tenant. Both
        # behind a savepoint: the transaction goes on and commits.
        with conn.transaction():
            conn.execute(INSERT_ORDER, [f"{run}-3"])
            rejections += rejected(conn, "PH001", order=f"{run}-2", data='{"total": 13}', key=f"{run}/2")
            rejections += rejected(conn, "23514", order=f"{run}-3", tenant="acme", key=f"umbrella/{run}/3")
            _, new = emit(conn, f"{run}-3", tenant="acme", key=f"acme/{run}/3")
            created += new

        # What is stored, as its owner reads it: a producer's role may not.
        with conn.transaction():
            events, orders = conn.execute(sql.SQL("""
                SELECT (SELECT count(*) FROM {0}.outbox_events WHERE starts_with(aggregate_id, %(run)s)),
                       (SELECT count(*) FROM {0}.example_orders WHERE starts_with(id, %(run)s))
                """).format(SCHEMA), {"run": run}).fetchone()
            payload, = conn.execute(sql.SQL("SELECT payload_json::text FROM {}.outbox_events WHERE id = %s")
                                    .format(SCHEMA), [first]).fetchone()
        assert (events, orders, created) == (3, 3, 3), (events, orders, created)
        identical = payload.endswith(f',"data":{DATA}}}')
        same = str(identical).lower()
        print(f"python emitted={created} deduped={deduped} rejected={rejections} bytes_identical={same}")
        assert identical, payload


if __name__ == "__main__":
    main()
