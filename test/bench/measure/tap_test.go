package bench_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

// A tap hears single statements and batches, word for word, and counts the round trips of its connections alone.
func TestTapHearsWhatIsSaid(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *bench.Database, _ string) {
		config, err := db.Config("bench-tap")
		if err != nil {
			t.Fatal(err)
		}
		var tap bench.Tap
		if err := tap.BeforeConnect(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		conn, err := pgx.ConnectConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(t.Context()) })
		before := tap.Count()
		for range 3 {
			if _, err := conn.Exec(t.Context(), "SELECT 1 AS alone"); err != nil {
				t.Fatal(err)
			}
		}
		if trips := tap.Count() - before; trips != 3 { // nothing is prepared that has no arguments
			t.Errorf("%d round trips, want 3", trips)
		}
		batch := &pgx.Batch{}
		batch.Queue("SELECT 2 AS one_of_many")
		batch.Queue("SELECT 3 AS another_of_many")
		if err := conn.SendBatch(t.Context(), batch).Close(); err != nil {
			t.Fatal(err)
		}
		for parts, want := range map[string]string{
			"alone": "SELECT 1 AS alone", "one_of": "SELECT 2 AS one_of_many", "of_many": "", "nothing": "",
		} {
			if got, err := tap.Statement("SELECT", parts); got != want || (err == nil) != (want != "") {
				t.Errorf("%s: %q, %v", parts, got, err)
			}
		}
	})
}

// Pages are those of the statements with the text, and of no other.
func TestPagesAreCounted(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *bench.Database, _ string) {
		const look = "SELECT count(*) AS all_rows FROM counted"
		err := db.Exec(t.Context(), "CREATE TABLE counted (n int, filler text)",
			"INSERT INTO counted SELECT n, repeat('x', 1000) FROM generate_series(1, 700) n", look)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.CountPages(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := db.Exec(t.Context(), "SELECT n FROM counted", look, look); err != nil {
			t.Fatal(err)
		}
		if p, err := db.PagesOf(t.Context(), "all_rows"); err != nil || p.Calls != 2 || p.Pages != 2*100 || p.Each(2) != 100 {
			t.Errorf("%+v, %v, want 100 pages twice", p, err) // seven rows on a page
		}
	})
}
