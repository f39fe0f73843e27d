package schema

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// noVacuum keeps VACUUM and ANALYZE away, which would come to some of the tables that are compared and change them or
// their plans.
const noVacuum = "ALTER TABLE {schema}.outbox_events SET (autovacuum_enabled = false, toast.autovacuum_enabled = false)"

// fill writes so many events of each size as our own statements do, with payloads of some bytes more than the least.
// Those do not compress, so that large ones go to TOAST.
func fill(t testing.TB, db *pgtest.DB, events int, sizes ...int) {
	t.Helper()
	db.Exec(t, noVacuum)
	db.Exec(t, `INSERT INTO {schema}.outbox_events (lane, id, event_type, aggregate_type, aggregate_id, payload_json)
		SELECT {schema}.outbox_lane('default', 'order', (i % 100)::text), id, 'order_created', 'order', (i % 100)::text,
		('{"version":1,"eventId":"' || id || '","occurredAt":"2026-01-01T00:00:00.000000Z","data":{"x":"' || left(
		       (SELECT string_agg(md5(i::text || k), '') FROM generate_series(0, bytes / 32) k), bytes) || '"}}')::json
		  FROM (SELECT {schema}.outbox_uuid7() AS id, bytes, i
		          FROM unnest($2::integer[]) s(bytes), generate_series(1, $1) i ORDER BY bytes, i) g`, events, sizes)
}

// cost is what EXPLAIN counts of one statement. It does not depend on how busy the machine is; only the images of whole
// pages depend on when the server's last checkpoint was.
type cost struct {
	walRecords, walBytes, images, buffers, triggers int
}

// querier is a pool or a transaction.
type querier interface {
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}

func explain(t testing.TB, db *pgtest.DB, on querier, statement string) cost {
	t.Helper()
	var text string
	if err := on.QueryRow(t.Context(),
		db.SQL("EXPLAIN (ANALYZE, WAL, BUFFERS, FORMAT JSON) "+statement)).Scan(&text); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	var plans []struct {
		Plan struct {
			Records int `json:"WAL Records"`
			Bytes   int `json:"WAL Bytes"`
			Images  int `json:"WAL FPI"`
			Hit     int `json:"Shared Hit Blocks"`
			Read    int `json:"Shared Read Blocks"`
		}
		Triggers []any
	}
	if err := json.Unmarshal([]byte(text), &plans); err != nil {
		t.Fatal(err)
	}
	return cost{
		walRecords: plans[0].Plan.Records, walBytes: plans[0].Plan.Bytes, images: plans[0].Plan.Images,
		buffers: plans[0].Plan.Hit + plans[0].Plan.Read, triggers: len(plans[0].Triggers),
	}
}

const (
	// bareSQL takes away everything that guards outbox_events.
	bareSQL = `DO $$ DECLARE name text; BEGIN
		FOR name IN SELECT conname FROM pg_constraint WHERE conrelid = '{schema}.outbox_events'::regclass 
		AND contype = 'c' LOOP
			EXECUTE format('ALTER TABLE {schema}.outbox_events DROP CONSTRAINT %I', name);
		END LOOP;
		FOR name IN SELECT tgname FROM pg_trigger WHERE tgrelid = '{schema}.outbox_events'::regclass AND NOT tgisinternal LOOP
			EXECUTE format('DROP TRIGGER %I ON {schema}.outbox_events', name);
		END LOOP; END $$`
	// rowTriggerSQL is the guard as one would write it at first: for each row.
	rowTriggerSQL = `DROP TRIGGER outbox_events_append_only ON {schema}.outbox_events;
		CREATE TRIGGER outbox_events_append_only BEFORE UPDATE OF payload_json ON {schema}.outbox_events
		FOR EACH ROW EXECUTE FUNCTION {schema}.outbox_reject_change('')`
	// plainCheckSQL is the check of the payload as one would write it at first: a CHECK.
	plainCheckSQL = `ALTER TABLE {schema}.outbox_events ADD CONSTRAINT outbox_events_payload_is_envelope CHECK ` +
		`((payload_json ->> 'eventId' = id::text) IS TRUE)`
	// rowDeleteSQL is the guard of deletes BEFORE instead of AFTER.
	rowDeleteSQL = `DROP TRIGGER outbox_events_keep_open ON {schema}.outbox_events;
		CREATE TRIGGER outbox_events_keep_open BEFORE DELETE ON {schema}.outbox_events
		FOR EACH ROW WHEN (OLD.state NOT IN (6, 7)) EXECUTE FUNCTION {schema}.outbox_reject_change('')`
)

// TestTheSettlePaysNothingForTheGuards: settling costs as many WAL records and buffers as on a table
// without any CHECK and trigger, also when the payloads are in TOAST. The guards in their obvious forms
// are mutants, to show that the difference would be seen.
func TestTheSettlePaysNothingForTheGuards(t *testing.T) {
	t.Parallel()
	const events, slack = 1000, 250 // a page split here or there
	onEach(t, func(t *testing.T, server pgtest.Server) {
		for _, bytes := range []int{480, 12000} {
			measure := func(change string) cost {
				db := pgtest.New(t, server)
				db.Exec(t, change)
				fill(t, db, events, bytes)
				return explain(t, db, db.Pool,
					"UPDATE {schema}.outbox_events SET state = 6, published_at = clock_timestamp() WHERE state = 0")
			}
			ours, bare, row, plain := measure("SELECT"), measure(bareSQL), measure(rowTriggerSQL), measure(plainCheckSQL)
			t.Logf("settle of %d events with %d bytes: %s", events, bytes,
				fmt.Sprintf("ours %+v, bare %+v, row trigger %+v, plain check %+v", ours, bare, row, plain))
			if ours.triggers != 0 {
				t.Errorf("%d triggers fired", ours.triggers)
			}
			if more := ours.walRecords - bare.walRecords; more > slack {
				t.Errorf("%d bytes: the guards cost %d WAL records for %d events", bytes, more, events)
			}
			if more := ours.buffers - bare.buffers; more > slack {
				t.Errorf("%d bytes: the guards cost %d buffers for %d events", bytes, more, events)
			}
			if more := row.walRecords - ours.walRecords; more < events-slack {
				t.Errorf("%d bytes: a trigger for each row costs %d more WAL records only: this test would not see it", bytes, more)
			}
			if more := plain.buffers - ours.buffers; bytes > 2000 && more < events {
				t.Errorf("%d bytes: a CHECK that reads the payload costs %d more buffers only: this test would not see it",
					bytes, more)
			}
		}
	})
}

// TestRetentionWritesNothingForTheGuards: deleting published events writes no WAL but that of the delete.
func TestRetentionWritesNothingForTheGuards(t *testing.T) {
	t.Parallel()
	const events, slack = 1000, 250
	onEach(t, func(t *testing.T, server pgtest.Server) {
		measure := func(change string) cost {
			db := pgtest.New(t, server)
			db.Exec(t, change)
			fill(t, db, events, 480)
			db.Exec(t, "UPDATE {schema}.outbox_events SET state = 6, published_at = clock_timestamp()")
			return explain(t, db, db.Pool, "DELETE FROM {schema}.outbox_events WHERE published_at IS NOT NULL")
		}
		ours, bare, row := measure("SELECT"), measure(bareSQL), measure(rowDeleteSQL)
		t.Logf("delete of %d events: ours %+v, bare %+v, trigger before %+v", events, ours, bare, row)
		if more := ours.walRecords - bare.walRecords; more > slack {
			t.Errorf("the guards cost %d WAL records for %d events", more, events)
		}
		if more := row.walRecords - ours.walRecords; more < events-slack {
			t.Errorf("a trigger before each delete costs %d more WAL records only: this test would not see it", more)
		}
	})
}
