// Emit events from Node.js with pg and nothing but SQL.
//
// DATABASE_URL says where; OUTBOX_SCHEMA where the outbox is installed (default: public). Prints one
// line and fails if anything differs from what its comments say.
//
// Nothing changes for a PgBouncer in transaction mode: pg prepares a statement under a name only when
// the query has a `name`. Leave it out there.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import pg from 'pg'

// Names are qualified, because a pooler does not keep search_path for a client.
const schema = pg.escapeIdentifier(process.env.OUTBOX_SCHEMA ?? 'public')
const INSERT_ORDER = `INSERT INTO ${schema}.example_orders (id) VALUES ($1)`
const EMIT = `
  SELECT id, created FROM ${schema}.outbox_emit('order_created', 'order', $1, $2::json,
    tenant_id => $3, dedupe_key => $4, actor => $5::json, headers => $6::json)`

// Usually JSON.stringify(...). Here with spaces, escapes and an order of keys that must all survive.
const DATA = String.raw`{"total": 12.50,  "currency":"EUR","zeta":1, "alpha":2, "note":"Grüße, 世界 🚀 \"[1:2]\" \u00e9"}`

// Writes one event in the transaction that the client is in; answers its id and whether it is new.
async function emit (client, { order, data = DATA, tenant, key, actor, headers }) {
  const { rows } = await client.query(EMIT, [order, data, tenant, key, actor, headers])
  return rows[0]
}

// Everything in one transaction, or nothing. A Pool's own query() may use another connection each time.
async function inTransaction (pool, work) {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    const result = await work(client)
    await client.query('COMMIT')
    return result
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  } finally {
    client.release()
  }
}

// Emits behind a savepoint, so that the rejection does not end the transaction around it.
async function rejected (client, sqlstate, event) {
  await client.query('SAVEPOINT before_emit')
  await assert.rejects(emit(client, event), { code: sqlstate })
  await client.query('ROLLBACK TO SAVEPOINT before_emit')
  return 1
}

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL })
const other = new pg.Pool({ connectionString: process.env.DATABASE_URL })
try {
  const run = randomUUID()
  let created = 0; let deduped = 0; let rejections = 0
  await pool.query(`CREATE TABLE IF NOT EXISTS ${schema}.example_orders (id text PRIMARY KEY)`)

  // The order and its event commit together.
  const first = await inTransaction(pool, async client => {
    await client.query(INSERT_ORDER, [`${run}-1`])
    return emit(client, {
      order: `${run}-1`,
      actor: { type: 'user', id: '7', name: 'Zoë' },
      headers: { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' }
    })
  })
  created += first.created

  // A rollback leaves neither.
  await assert.rejects(inTransaction(pool, async client => {
    await client.query(INSERT_ORDER, [`${run}-rolled-back`])
    await emit(client, { order: `${run}-rolled-back` })
    throw new Error('out of stock')
  }), { message: 'out of stock' })

  // A dedupe key makes a second try harmless, on this connection and on any other.
  const event = { order: `${run}-2`, key: `${run}/2` }
  const keyed = await inTransaction(pool, async client => {
    await client.query(INSERT_ORDER, [event.order])
    return emit(client, event)
  })
  created += keyed.created
  for (const retry of [pool, other]) {
    assert.deepEqual(await inTransaction(retry, client => emit(client, event)), { id: keyed.id, created: false })
    deduped++
  }

  // Other content under a used key is rejected, and so is a key that belongs to another tenant. Both
  // behind a savepoint: the transaction goes on and commits.
  await inTransaction(pool, async client => {
    await client.query(INSERT_ORDER, [`${run}-3`])
    rejections += await rejected(client, 'PH001', { ...event, data: '{"total": 13}' })
    rejections += await rejected(client, '23514', { order: `${run}-3`, tenant: 'acme', key: `umbrella/${run}/3` })
    created += (await emit(client, { order: `${run}-3`, tenant: 'acme', key: `acme/${run}/3` })).created
  })

  // What is stored, as its owner reads it: a producer's role may not.
  const { rows: [stored] } = await pool.query(`
    SELECT (SELECT count(*)::int FROM ${schema}.outbox_events WHERE starts_with(aggregate_id, $1)) AS events,
           (SELECT count(*)::int FROM ${schema}.example_orders WHERE starts_with(id, $1)) AS orders,
           (SELECT payload_json::text FROM ${schema}.outbox_events WHERE id = $2) AS payload`, [run, first.id])
  assert.deepEqual([stored.events, stored.orders, created], [3, 3, 3])
  const identical = stored.payload.endsWith(`,"data":${DATA}}`)
  console.log(`node emitted=${created} deduped=${deduped} rejected=${rejections} bytes_identical=${identical}`)
  assert.ok(identical, stored.payload)
} finally {
  await Promise.all([pool.end(), other.end()])
}
