//! Emit events from Rust with sqlx and nothing but SQL.
//!
//! DATABASE_URL says where; OUTBOX_SCHEMA where the outbox is installed (default: public); PGBOUNCER=1
//! that the address is a PgBouncer in transaction mode. Prints one line and fails if anything differs
//! from what its comments say.
use sqlx::{Connection, PgConnection};
use std::{env, error::Error, process, time};

// Usually serde_json::to_string(...). Here with spaces, escapes and an order of keys that must all survive.
const DATA: &str =
    r#"{"total": 12.50,  "currency":"EUR","zeta":1, "alpha":2, "note":"Grüße, 世界 🚀 \"[1:2]\" \u00e9"}"#;
const ACTOR: &str = r#"{"type":"user","id":"7","name":"Zoë"}"#;
const HEADERS: &str = r#"{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}"#;

#[derive(Clone, Copy, Default)]
struct Event<'a> {
    order: &'a str,
    data: &'a str,
    tenant: Option<&'a str>,
    key: Option<&'a str>,
    actor: Option<&'a str>,
    headers: Option<&'a str>,
}

struct Shop {
    insert_order: String,
    emit: String,
    /// Keep prepared statements. Not behind PgBouncer in transaction mode: every transaction may get
    /// another server connection, and a statement that was prepared on one is missing on the next.
    persistent: bool,
}

impl Shop {
    async fn insert_order(&self, tx: &mut PgConnection, id: &str) -> Result<(), sqlx::Error> {
        sqlx::query(&self.insert_order).persistent(self.persistent).bind(id).execute(tx).await?;
        Ok(())
    }

    /// Writes one event in the transaction that tx is; returns its id and whether it is new.
    async fn emit(&self, tx: &mut PgConnection, e: Event<'_>) -> Result<(String, bool), sqlx::Error> {
        let query = sqlx::query_as(&self.emit).persistent(self.persistent).bind(e.order).bind(e.data);
        query.bind(e.tenant).bind(e.key).bind(e.actor).bind(e.headers).fetch_one(tx).await
    }

    /// Emits behind a savepoint, so that the rejection does not end the transaction around it.
    async fn rejected(&self, tx: &mut PgConnection, sqlstate: &str, e: Event<'_>) -> Result<u32, sqlx::Error> {
        let mut savepoint = tx.begin().await?; // inside a transaction this is a savepoint
        let error = self.emit(&mut savepoint, e).await.expect_err(sqlstate);
        assert_eq!(error.as_database_error().and_then(|e| e.code()).as_deref(), Some(sqlstate), "{error}");
        savepoint.rollback().await?;
        Ok(1)
    }

    /// The order and its event commit together: what is dropped before the commit is rolled back.
    async fn place(&self, conn: &mut PgConnection, e: Event<'_>) -> Result<(String, bool), sqlx::Error> {
        let mut tx = conn.begin().await?;
        self.insert_order(&mut tx, e.order).await?;
        let answer = self.emit(&mut tx, e).await?;
        tx.commit().await?;
        Ok(answer)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // Names are qualified, because a pooler does not keep search_path for a client.
    let schema = env::var("OUTBOX_SCHEMA").unwrap_or_else(|_| "public".into());
    let schema = format!("\"{}\"", schema.replace('"', "\"\""));
    let shop = Shop {
        insert_order: format!("INSERT INTO {schema}.example_orders (id) VALUES ($1)"),
        emit: format!(
            "SELECT id::text, created FROM {schema}.outbox_emit('order_created', 'order', $1, $2::json,
                 tenant_id => $3, dedupe_key => $4, actor => $5::json, headers => $6::json)"
        ),
        persistent: env::var_os("PGBOUNCER").is_none(),
    };
    let url = env::var("DATABASE_URL")?;
    let (mut conn, mut other) = (PgConnection::connect(&url).await?, PgConnection::connect(&url).await?);
    let create = format!("CREATE TABLE IF NOT EXISTS {schema}.example_orders (id text PRIMARY KEY)");
    sqlx::raw_sql(&create).execute(&mut conn).await?;
    let run = format!("{}-{}", process::id(), time::UNIX_EPOCH.elapsed()?.as_nanos());
    let orders = ["1", "2", "3", "rolled-back"].map(|name| format!("{run}-{name}"));
    let event = |order| Event { order, data: DATA, ..Default::default() };

    let one = Event { actor: Some(ACTOR), headers: Some(HEADERS), ..event(&orders[0]) };
    let (first, new) = shop.place(&mut conn, one).await?;
    let mut created = u32::from(new);

    // A rollback leaves neither.
    let mut tx = conn.begin().await?;
    shop.insert_order(&mut tx, &orders[3]).await?;
    shop.emit(&mut tx, event(&orders[3])).await?;
    tx.rollback().await?;

    // A dedupe key makes a second try harmless, on this connection and on any other.
    let key = format!("{run}/2");
    let two = Event { key: Some(&key), ..event(&orders[1]) };
    let (keyed, new) = shop.place(&mut conn, two).await?;
    created += u32::from(new);
    let mut deduped = 0;
    for retry in [&mut conn, &mut other] {
        let mut tx = retry.begin().await?;
        assert_eq!(shop.emit(&mut tx, two).await?, (keyed.clone(), false));
        tx.commit().await?;
        deduped += 1;
    }

    // Other content under a used key is rejected, and so is a key that belongs to another tenant. Both
    // behind a savepoint: the transaction goes on and commits.
    let (own, foreign) = (format!("acme/{run}/3"), format!("umbrella/{run}/3"));
    let three = Event { tenant: Some("acme"), key: Some(&own), ..event(&orders[2]) };
    let mut tx = conn.begin().await?;
    shop.insert_order(&mut tx, three.order).await?;
    let mut rejections = shop.rejected(&mut tx, "PH001", Event { data: r#"{"total": 13}"#, ..two }).await?;
    rejections += shop.rejected(&mut tx, "23514", Event { key: Some(&foreign), ..three }).await?;
    created += u32::from(shop.emit(&mut tx, three).await?.1);
    tx.commit().await?;

    // What is stored, as its owner reads it: a producer's role may not. In a transaction, because sqlx
    // prepares and executes in two steps, and a pooler may send these to two servers.
    let read = format!(
        "SELECT (SELECT count(*) FROM {schema}.outbox_events WHERE starts_with(aggregate_id, $1)),
                (SELECT count(*) FROM {schema}.example_orders WHERE starts_with(id, $1)),
                (SELECT payload_json::text FROM {schema}.outbox_events WHERE id = $2::uuid)"
    );
    let mut tx = conn.begin().await?;
    let query = sqlx::query_as(&read).persistent(shop.persistent).bind(&run).bind(&first);
    let (events, rows, payload): (i64, i64, String) = query.fetch_one(&mut *tx).await?;
    tx.commit().await?;
    assert_eq!((events, rows, created), (3, 3, 3));
    let identical = payload.ends_with(&format!(",\"data\":{DATA}}}"));
    println!("rust emitted={created} deduped={deduped} rejected={rejections} bytes_identical={identical}");
    assert!(identical, "{payload}");
    Ok(())
}
