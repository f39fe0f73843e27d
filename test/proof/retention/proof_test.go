package retention_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	product "github.com/posthaste-dev/posthaste/relay/retention"
	"github.com/posthaste-dev/posthaste/test/kit/services"
	"github.com/posthaste-dev/posthaste/test/proof/retention"
)

// small is a proof of a few seconds. Its times decide nothing.
func small() retention.Plan {
	plan := retention.Short()
	plan.URL = services.Postgres18()
	plan.Rows, plan.Pairs, plan.MostPairs, plan.Rate, plan.Pause = 4_000, 2, 2, 200, -1
	plan.Length, plan.Settle = 500*time.Millisecond, 200*time.Millisecond
	return plan
}

// mutant is a janitor that runs a statement of its own, behind the guards' back, beside ours or instead.
type mutant struct {
	db        product.DB
	ours      retention.Janitor // nil: none
	statement string
	result    product.Result
}

func (p *mutant) Once(ctx context.Context) (result product.Result, err error) {
	result = p.result
	if p.ours != nil {
		if result, err = p.ours.Once(ctx); err != nil {
			return result, err
		}
	}
	tx, err := p.db.BeginTx(ctx, pgx.TxOptions{})
	if err != nil {
		return result, err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	for _, statement := range []string{"SET LOCAL session_replication_role = replica", p.statement} {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return result, err
		}
	}
	return result, tx.Commit(ctx)
}

// TestTheProofPassesAndFails: ours passes, and none of the janitors that are not right.
func TestTheProofPassesAndFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		statement string
		alone     bool
		claims    int64
		want      string // in a problem; empty: there is none
	}{
		"ours":            {statement: "SELECT"},
		"deletes nothing": {statement: "SELECT", alone: true, want: "are left of 4000"},
		"claims to have":  {statement: "SELECT", alone: true, claims: 2000, want: "are left of 4000"},
		"goes by age alone": {
			statement: "DELETE FROM public.outbox_events WHERE created_at < now() - interval '40 days' AND state <> 6",
			want:      "that are not settled are left",
		},
		"takes what is asked": {
			statement: "DELETE FROM public.outbox_events WHERE published_at < now() - interval '40 days'",
			want:      "that shall be delivered again are left",
		},
		"takes the young": {
			statement: "DELETE FROM public.outbox_events WHERE published_at > now() - interval '1 day' AND aggregate_id <> " +
				"'probe'", want: "young events are left",
		},
		"takes all at once": {alone: true, claims: 2000, want: "a statement deleted 4000 rows", statement: `
			DELETE FROM public.outbox_events e WHERE published_at < now() - interval '40 days'
			   AND NOT EXISTS (SELECT FROM public.outbox_requests r WHERE r.event_id = e.id)`},
		"locks the table": {want: "waited for a lock of retention's", statement: `
			DO $$ DECLARE since timestamptz; ends timestamptz := clock_timestamp() + '3 min'; BEGIN
				LOCK TABLE public.outbox_events IN SHARE MODE;
				WHILE clock_timestamp() < ends LOOP -- until somebody waits, and was seen
					PERFORM pg_stat_clear_snapshot();
					EXIT WHEN EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
						AND query LIKE '%pg_blocking_pids%' AND state = 'idle' AND query_start > since);
					IF since IS NULL 
					AND EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock') THEN
						since := clock_timestamp();
					END IF;
					PERFORM pg_sleep(0.01);
				END LOOP;
			END $$`},
		"keeps what is due too": {
			statement: "INSERT INTO public.outbox_events (lane, id, event_type, aggregate_type, aggregate_id, payload_json, " +
				"state, published_at) SELECT 1, public.outbox_uuid7(), 'thing_moved', 'relic', 'x', '{}', 6, now() - interval " +
				"'90 days'",
			want: "are left of 4000",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, err := retention.Run(t.Context(), small(),
				func(db product.DB, config product.Config) (retention.Janitor, error) {
					p := &mutant{db: db, statement: c.statement, result: product.Result{Published: c.claims}}
					if c.alone {
						return p, nil
					}
					ours, err := retention.Retention(db, config)
					p.ours = ours
					return p, err
				}, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			problems := strings.Join(report.Problems(), "\n")
			if c.want == "" && problems != "" || !strings.Contains(problems, c.want) {
				t.Errorf("the problems are %q, want %q", problems, c.want)
			}
			var text strings.Builder
			if err := report.Print(&text); err != nil ||
				!strings.HasSuffix(text.String(), map[bool]string{true: " ok=true\n", false: " ok=false\n"}[c.want == ""]) {
				t.Errorf("it prints, %v:\n%s", err, &text)
			}
		})
	}
}

// TestMorePairsWhileItCannotTell: stretches are never so alike, so it goes on as long as it may.
func TestMorePairsWhileItCannotTell(t *testing.T) {
	t.Parallel()
	plan := small()
	plan.MaxRatio, plan.MostPairs = 1, 3
	report, err := retention.Run(t.Context(), plan, retention.Retention, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := report.Print(&text); err != nil {
		t.Fatal(err)
	}
	for _, figure := range []string{" removed=6000 left_due=0 ", " pairs=3 "} {
		if !strings.Contains(text.String(), figure) {
			t.Errorf("no %q in %s", figure, &text)
		}
	}
	if len(report.Stretches) != 6 || strings.Contains(text.String(), "are left of") {
		t.Errorf("%d stretches:\n%s", len(report.Stretches), &text)
	}
}
