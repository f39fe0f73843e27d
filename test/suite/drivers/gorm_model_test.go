package drivers_test

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm/schema"

	"github.com/posthaste-dev/posthaste/outbox/outboxgorm"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// models are the importable models with the tables that they must match.
var models = map[string]any{
	"outbox_events": &outboxgorm.Event{},
	"outbox_held":   &outboxgorm.HeldEvent{},
	"outbox_dlq":    &outboxgorm.DeadLetter{},
}

// lookedUpBy is a column that GORM takes for the key, where the table's key is made of what the model leaves out.
var lookedUpBy = map[string]string{"outbox_events": "id"}

// A column is what the model and the catalog must agree on.
type column struct {
	Name     string
	Type     string
	Nullable bool
	Primary  bool
	Default  string // "none", or the expression
	Comment  string
}

// TestGORMModelIsTheTable compares the models with the live tables, column by column and in order, so
// that a column too many on either side shows as well. An event's lane is left out: a model that may one day be written
// by would send 0 for it.
func TestGORMModelIsTheTable(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		for table, model := range models {
			got, want := modelColumns(t, db, model), tableColumns(t, db, table)
			if key := lookedUpBy[table]; key != "" {
				want = slices.DeleteFunc(want, func(c column) bool { return c.Name == "lane" })
				for i := range want {
					want[i].Primary = want[i].Name == key && hasIndexOf(t, db, table, key)
				}
			}
			for i := range max(len(got), len(want)) {
				var has, should column
				if i < len(got) {
					has = got[i]
				}
				if i < len(want) {
					should = want[i]
				}
				if has != should {
					t.Errorf("%s, column %d:\nmodel %+v\ntable %+v", table, i+1, has, should)
				}
			}
		}
	})
}

// hasIndexOf says whether the table has a B-tree index of this column alone and of all rows. It asks for no index's
// text: PostgreSQL makes that for the indexes of other tests as well, which may just be dropped.
func hasIndexOf(t *testing.T, db *pgtest.DB, table, column string) bool {
	t.Helper()
	return db.Count(t, `SELECT count(*) FROM pg_index i
		JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
		JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam AND m.amname = 'btree'
		WHERE i.indrelid = format('%I.%I', $1::text, $2::text)::regclass AND i.indnatts = 1 AND i.indpred IS NULL
		AND a.attname = $3`,
		db.Schema, table, column) == 1
}

func modelColumns(t *testing.T, db *pgtest.DB, model any) []column {
	t.Helper()
	parsed, err := schema.Parse(model, &sync.Map{}, schema.NamingStrategy{})
	if err != nil {
		t.Fatal(err)
	}
	columns := make([]column, len(parsed.Fields))
	for i, field := range parsed.Fields {
		pointer := field.FieldType.Kind() == reflect.Pointer
		if pointer == field.NotNull {
			t.Errorf("%s: the Go type and the tag do not agree about null", field.Name)
		}
		if !field.Readable || field.Creatable || field.Updatable {
			t.Errorf("%s: GORM may write it", field.Name)
		}
		if field.AutoCreateTime != 0 || field.AutoUpdateTime != 0 || field.AutoIncrement {
			t.Errorf("%s: GORM makes up a value for it", field.Name)
		}
		columns[i] = column{
			Name: field.DBName, Type: canonicalType(t, db, string(field.DataType)), Nullable: pointer,
			Primary: field.PrimaryKey, Default: "none", Comment: field.Comment,
		}
		if field.HasDefaultValue {
			columns[i].Default = field.DefaultValue
		}
	}
	return columns
}

// canonicalType spells a type as PostgreSQL does.
func canonicalType(t *testing.T, db *pgtest.DB, name string) string {
	t.Helper()
	var canonical string
	if err := db.Pool.QueryRow(t.Context(), "SELECT $1::text::regtype::text", name).Scan(&canonical); err != nil {
		t.Fatalf("type %q: %v", name, err)
	}
	return canonical
}

var literal = regexp.MustCompile(`^'(.*)'::text$`)

func tableColumns(t *testing.T, db *pgtest.DB, table string) []column {
	t.Helper()
	rows, err := db.Pool.Query(t.Context(), `
		SELECT c.column_name, c.data_type, c.is_nullable = 'YES', k.column_name IS NOT NULL, 
		coalesce(c.column_default, 'none'),
		       coalesce(col_description(format('%I.%I', c.table_schema, c.table_name)::regclass, c.ordinal_position), '')
		  FROM information_schema.columns c
		  LEFT JOIN information_schema.key_column_usage k
		    ON (k.table_schema, k.table_name, k.column_name, k.constraint_name) = (c.table_schema, c.table_name, 
		    c.column_name, c.table_name || '_pkey')
		 WHERE c.table_schema = $1 AND c.table_name = $2 ORDER BY c.ordinal_position`, db.Schema, table)
	if err != nil {
		t.Fatal(err)
	}
	columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[column])
	if err != nil || len(columns) == 0 {
		t.Fatalf("%s has %d columns (%v)", table, len(columns), err)
	}
	for i, c := range columns {
		columns[i].Default = literal.ReplaceAllString(c.Default, "$1")
	}
	return columns
}

// TestAutoMigrateChangesNothing: GORM's AutoMigrate on the models finds the tables as it wants them. A
// wrong model shows that the test would see a change.
func TestAutoMigrateChangesNothing(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		statements := &recorder{}
		gorm := newGORM(t, withParameters(t, db.URL, "search_path="+db.Schema), gormMode{})
		gorm.Logger = statements
		before := catalog(t, db)
		for table, model := range models {
			if err := gorm.AutoMigrate(model); err != nil {
				t.Errorf("%s: %v", table, err)
			}
		}
		for _, line := range catalog(t, db) {
			if !slices.Contains(before, line) {
				t.Errorf("the catalog changed: %s", line)
			}
		}
		if writes := statements.writes(); len(writes) > 0 {
			t.Errorf("AutoMigrate sent\n%s", strings.Join(writes, "\n"))
		}
		_ = gorm.AutoMigrate(&wrongModel{}) // whether the database lets it through is not the point
		if writes := statements.writes(); len(writes) == 0 || !strings.Contains(writes[0], "ALTER COLUMN") {
			t.Errorf("AutoMigrate of a wrong model sent %q, want it to alter a column", writes)
		}
	})
}

// wrongModel has the payload as text. (AutoMigrate does not tell jsonb from json: it compares prefixes.)
type wrongModel struct {
	ID          string `gorm:"type:uuid;primaryKey"`
	PayloadJSON string `gorm:"column:payload_json;type:text;not null"`
}

func (wrongModel) TableName() string { return "outbox_events" }

// catalog prints what PostgreSQL knows about the test's tables, with the transactions that wrote it and
// with how many lines there are of each kind.
func catalog(t *testing.T, db *pgtest.DB) []string {
	t.Helper()
	var all []string
	for _, query := range []string{
		`SELECT c.relname, a.xmin::text, to_jsonb(a) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid WHERE ` +
			`c.relnamespace = $1::text::regnamespace AND a.attnum > 0`,
		`SELECT d.adrelid::regclass, d.xmin::text, pg_get_expr(d.adbin, d.adrelid) FROM pg_attrdef d JOIN pg_class c ON ` +
			`c.oid = d.adrelid WHERE c.relnamespace = $1::text::regnamespace`,
		`SELECT conname, xmin::text, pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = ` +
			`$1::text::regnamespace`,
		`SELECT indexname, indexdef FROM pg_indexes WHERE schemaname::text = $1`,
		`SELECT g.tgname, g.xmin::text, pg_get_triggerdef(g.oid) FROM pg_trigger g JOIN pg_class c ON c.oid = g.tgrelid ` +
			`WHERE c.relnamespace = $1::text::regnamespace`,
		`SELECT d.objoid::text, d.objsubid, d.xmin::text, d.description FROM pg_description d JOIN pg_class c ON c.oid = ` +
			`d.objoid WHERE c.relnamespace = $1::text::regnamespace`,
	} {
		rows, err := db.Pool.Query(t.Context(), "SELECT t::text FROM ("+query+") t", db.Schema)
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil || len(lines) == 0 {
			t.Fatalf("%s: %d rows (%v)", query, len(lines), err)
		}
		all = append(append(all, lines...), fmt.Sprintf("%d of %s", len(lines), query))
	}
	return all
}
