package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// deliveryColumns are those that publishing changes.
var deliveryColumns = []string{"state", "published_at", "attempt_count", "last_error"}

// eventsKey is the primary key of the events; the migrations make it with the table.
var eventsKey = made{
	name: "outbox_events_pkey", table: "outbox_events",
	statement: "ALTER TABLE ONLY outbox_events ADD CONSTRAINT outbox_events_pkey PRIMARY KEY (lane, seq)",
}

// checkIndexes finds those that are missing, broken, or cost too much.
func (x *examination) checkIndexes(ctx context.Context) error {
	want, err := readExpected()
	if err != nil {
		return err
	}
	there := map[string]bool{}
	var name, table string
	var valid, building, special bool
	var columns []string
	err = x.rows(ctx, "indexes", []any{x.namespace()}, []any{&name, &table, &valid, &building, &columns, &special},
		func() {
			there[name] = true
			ours := name == eventsKey.name || slices.ContainsFunc(want.indexes, func(m made) bool { return m.name == name })
			drop := "DROP INDEX CONCURRENTLY " + x.name(name)
			var delivery []string
			for _, column := range deliveryColumns {
				if table == eventsKey.table && slices.Contains(columns, column) {
					delivery = append(delivery, column)
				}
			}
			switch {
			case !valid && !building:
				x.noPlan[name] = true
				x.sqlf("index_invalid", "REINDEX INDEX CONCURRENTLY "+x.name(name), "the index %s of %s is not valid", name, table)
			case ours:
			case len(delivery) > 0:
				x.sqlf("index_on_delivery", drop, "the index %s of %s names %s", name, table, strings.Join(delivery, ", "))
			case table == eventsKey.table && special:
				x.sqlf("index_costly", drop, "the index %s of %s is partial or over an expression", name, table)
			}
		})
	if err != nil {
		return err
	}
	for _, index := range want.indexes {
		if !there[index.name] {
			x.noPlan[index.name] = true
			statement := strings.Replace(index.qualified(x.name), "INDEX ", "INDEX CONCURRENTLY ", 1)
			x.sqlf("index_missing", statement, "the index %s of %s is missing", index.name, index.table)
		}
	}
	if !there[eventsKey.name] {
		x.noPlan[eventsKey.name] = true
		x.sqlf("index_missing", strings.Replace(eventsKey.statement, "outbox_events ADD", x.name("outbox_events")+" ADD", 1),
			"the primary key of outbox_events is missing")
	}
	return nil
}

// checkTables compares settings of the tables with those that the migrations set. Finer ones are somebody's choice.
func (x *examination) checkTables(ctx context.Context) error {
	want, err := readExpected()
	if err != nil {
		return err
	}
	var table string
	var logged, partitioned bool
	var options, checks []string
	return x.rows(ctx, "tables", []any{x.namespace()}, []any{&table, &logged, &partitioned, &options, &checks}, func() {
		if !logged {
			x.sqlf("table_unlogged", "ALTER TABLE "+x.name(table)+" SET LOGGED", "the table %s is unlogged", table)
		}
		if table == eventsKey.table {
			for _, check := range checks {
				x.sqlf("check_costly", fmt.Sprintf("ALTER TABLE %s DROP CONSTRAINT %s", x.name(table), ident(check)),
					"outbox_events has the CHECK %s", check)
			}
		}
		if partitioned { // its partitions have settings of their own
			return
		}
		x.checkTableSettings(table, options, want.settings[table])
	})
}

// checkTableSettings compares those of one table.
func (x *examination) checkTableSettings(table string, options []string, want map[string]string) {
	has := map[string]string{}
	for _, option := range options {
		name, value, _ := strings.Cut(option, "=")
		has[name] = value
	}
	if value, set := has["autovacuum_enabled"]; set && isOff(value) {
		x.sqlf("autovacuum_off", "ALTER TABLE "+x.name(table)+" RESET (autovacuum_enabled)", "autovacuum is off for %s",
			table)
	}
	var wrong, words []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got, set := has[name]; !set || number(got) > number(want[name]) {
			wrong = append(wrong, name+" = "+want[name])
			if !set {
				got = "the default"
			}
			words = append(words, name+" is "+got)
		}
	}
	if len(wrong) > 0 {
		x.sqlf("table_settings", fmt.Sprintf("ALTER TABLE %s SET (%s)", x.name(table), strings.Join(wrong, ", ")),
			"of %s %s", table, strings.Join(words, ", "))
	}
}

func number(text string) float64 {
	value, _ := strconv.ParseFloat(text, 64)
	return value
}

// checkSequence: numbers are drawn one by one, and none twice.
func (x *examination) checkSequence(ctx context.Context) error {
	var cache, increment int64
	var cycles, readable bool
	sequence := x.name("outbox_events_seq_seq")
	err := x.row(ctx, `SELECT s.seqcache, s.seqincrement, s.seqcycle,
		pg_catalog.has_sequence_privilege(s.seqrelid, 'SELECT')
		FROM pg_catalog.pg_sequence s WHERE s.seqrelid = pg_catalog.to_regclass($1::text)`, []any{sequence},
		[]any{&cache, &increment, &cycles, &readable})
	if err != nil {
		return err
	}
	if cache != 1 || increment != 1 || cycles {
		x.sqlf("sequence_cached", "ALTER SEQUENCE "+sequence+" CACHE 1 INCREMENT BY 1 NO CYCLE",
			"the sequence of outbox_events has CACHE %d, INCREMENT BY %d, CYCLE %t", cache, increment, cycles)
	}
	if !readable {
		x.leaveOutf("the sequence against the table: the role %s may not read it (the relay and the owner may)", x.role)
		return nil
	}
	var last, highest int64
	err = x.rows(ctx, "sequence", nil, []any{&last, &highest}, func() {})
	if err == nil && last < highest {
		x.sqlf("sequence_behind", x.repairSequence(highest),
			"the sequence stands at %d, and numbers up to %d are in use", last,
			highest)
	}
	return err
}

// repairSequence is what a relay says that finds it so: see there why the floors are taken back and the relays ended.
func (x *examination) repairSequence(highest int64) string {
	return fmt.Sprintf("BEGIN; LOCK TABLE %[1]s; UPDATE %[1]s SET lanes = '{}', ended_at = clock_timestamp() "+
		"WHERE ended_at IS NULL; UPDATE %[2]s SET owner = NULL, token = NULL, floor = 0; SELECT setval(%[3]s, %[4]d); COMMIT",
		x.name("outbox_relays"), x.name("outbox_lanes"), literal(x.name("outbox_events_seq_seq")), highest)
}
