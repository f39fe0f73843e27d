package bench_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/posthaste-dev/posthaste/test/bench/measure"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

func TestMain(m *testing.M) { os.Exit(goroutines.Run(m)) }

func onEach(t *testing.T, test func(t *testing.T, db *bench.Database, url string)) {
	t.Helper()
	for _, server := range pgtest.Servers() {
		t.Run(server.Name, func(t *testing.T) {
			t.Parallel()
			db, err := bench.NewDatabase(t.Context(), server.URL)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			})
			test(t, db, server.URL)
		})
	}
}

// Twice the rows must be twice the log, whatever other sessions write meanwhile.
func TestWALMeterCountsOnlyThisDatabase(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *bench.Database, url string) {
		meter, err := bench.NewWALMeter(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		other, err := bench.NewDatabase(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { other.Close() })
		for _, d := range []*bench.Database{db, other} {
			if err := d.Exec(t.Context(), "CREATE TABLE plain (n int, filler text)"); err != nil {
				t.Fatal(err)
			}
		}
		insert := func(rows int) bench.WAL {
			wal, err := meter.Measure(t.Context(), func(ctx context.Context) error {
				statement := "INSERT INTO plain SELECT n, repeat('x', 100) FROM generate_series(1, %d) n"
				if err := other.Exec(ctx, fmt.Sprintf(statement, 5000)); err != nil {
					return err
				}
				return db.Exec(ctx, fmt.Sprintf(statement, rows))
			})
			if err != nil {
				t.Fatal(err)
			}
			return wal
		}
		insert(100) // the first row of a page has its own record
		one, two := insert(1000), insert(2000)
		if ratio := float64(two.Data()) / float64(one.Data()); ratio < 1.9 || ratio > 2.1 {
			t.Errorf("%d bytes for 1,000 rows and %d for 2,000: a ratio of %.2f", one.Data(), two.Data(), ratio)
		}
		if plain := one.ByRelation["plain"]; plain.Records < 1000 || plain.Data() < 100_000 {
			t.Errorf("the table's part of the log is %+v", plain)
		}
		if commits := one.ByRelation["transactions"]; commits.Records != 1 {
			t.Errorf("%d records without a relation, want the commit", commits.Records)
		}
	})
}

// A checkpoint before the work must show as full-page images and nowhere else.
func TestWALMeterTellsPageImagesApart(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *bench.Database, _ string) {
		meter, err := bench.NewWALMeter(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Exec(t.Context(), "CREATE TABLE plain (n int)", "INSERT INTO plain VALUES (1)",
			"CHECKPOINT"); err != nil {
			t.Fatal(err)
		}
		insert := func() bench.WAL {
			wal, err := meter.Measure(t.Context(), func(ctx context.Context) error {
				return db.Exec(ctx, "INSERT INTO plain VALUES (2)")
			})
			if err != nil {
				t.Fatal(err)
			}
			return wal
		}
		if first := insert(); first.PageImages == 0 || first.Data() > 500 {
			t.Errorf("after a checkpoint: %d bytes of page images, %d of data", first.PageImages, first.Data())
		}
	})
}

func TestBackendsAreThoseOfOneApplication(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *bench.Database, _ string) {
		pool, err := db.Pool(t.Context(), "busy", 1)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		var pid int
		if err := pool.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
			t.Fatal(err)
		}
		backends, err := db.Backends(t.Context(), "busy")
		if err != nil || !slices.Equal(backends, []int{pid}) {
			t.Errorf("%v, %v, want %d", backends, err, pid)
		}
		if nobody, err := db.Backends(t.Context(), "nobody"); err != nil || len(nobody) != 0 {
			t.Errorf("%v, %v of nobody", nobody, err)
		}
	})
}
