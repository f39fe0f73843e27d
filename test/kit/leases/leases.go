// Package leases has the statements by which tests change who holds lanes, behind the relays' backs. {schema} is to be
// replaced.
package leases

// Expire ends the leases of the relays called $1 as if their time had passed. It takes a living relay to notice.
const Expire = `UPDATE {schema}.outbox_beats SET until = clock_timestamp() - interval '1 ms'
	WHERE until > clock_timestamp()
	  AND relay IN (SELECT r.id FROM {schema}.outbox_relays r WHERE r.name = $1 AND r.ended_at IS NULL)`

// Join adds a relay that does nothing: its id $1, its name $2, and for how long it is alive, $3.
const Join = `WITH relay AS (
		INSERT INTO {schema}.outbox_relays (id, token, name) VALUES ($1::text::uuid, gen_random_uuid(), $2) RETURNING id
	) INSERT INTO {schema}.outbox_beats (relay, number, until)
	SELECT id, 1, clock_timestamp() + $3::text::interval FROM relay`

// Hold gives all lanes to the relay $1, which has joined. Nobody else may have one.
const Hold = `WITH relay AS (
		UPDATE {schema}.outbox_relays SET lanes = ARRAY(SELECT lane FROM {schema}.outbox_lanes ORDER BY lane)
		 WHERE id = $1::text::uuid RETURNING id, token
	) UPDATE {schema}.outbox_lanes l SET owner = r.id, token = r.token, acquired_at = clock_timestamp() FROM relay r`

// Steal takes lanes, $1, from whoever has them. Nobody that is there has them then: a relay that were would count, and
// get its share.
const Steal = `WITH robbed AS (
		SELECT id FROM {schema}.outbox_relays WHERE lanes && $1::smallint[] FOR UPDATE
	), without AS (
		UPDATE {schema}.outbox_relays r
		   SET lanes = ARRAY(SELECT unnest(r.lanes) EXCEPT SELECT unnest($1::smallint[]) ORDER BY 1)
		  FROM robbed WHERE r.id = robbed.id
	) UPDATE {schema}.outbox_lanes
	     SET owner = gen_random_uuid(), token = gen_random_uuid(), acquired_at = clock_timestamp()
	   WHERE lane = ANY ($1::smallint[])`

// Return frees the lanes that were stolen.
const Return = `UPDATE {schema}.outbox_lanes l SET owner = NULL, token = NULL
	WHERE NOT EXISTS (SELECT FROM {schema}.outbox_relays r WHERE r.id = l.owner)`

// All is what Steal can be given: every lane.
func All() []int16 {
	lanes := make([]int16, 64)
	for i := range lanes {
		lanes[i] = int16(i + 1)
	}
	return lanes
}
