package pinned_test

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/measure"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/test/bench/pinned"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

func TestMain(m *testing.M) { os.Exit(goroutines.Run(m)) }

// slowly is how long a stand-in without the watermark waits before every read.
const slowly = 200 * time.Millisecond

// standIn is a relay that reads everything from the beginning. Without the watermark it is slow, as ours
// would be among enough dead tuples.
type standIn struct {
	config relay.Config
	lanes  atomic.Int64
	// reorders lets later events of a batch go first, loses leaves some out.
	reorders, loses bool
}

func (s *standIn) Stats() relay.Stats { return relay.Stats{Lanes: int(s.lanes.Load())} }

func (s *standIn) Run(ctx context.Context) error {
	conn, err := pgx.Connect(context.Background(), s.config.Database)
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	// By the index, as a queue does it: that leads to everything dead.
	if _, err := conn.Exec(ctx, "SET enable_seqscan = off; SET enable_bitmapscan = off"); err != nil {
		return err
	}
	s.lanes.Store(64)
	wait := 5 * time.Millisecond
	if measure.Of(ctx).NoWatermark {
		wait = slowly
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		if err := s.batch(context.Background(), conn); err != nil {
			return err
		}
	}
}

func (s *standIn) batch(ctx context.Context, conn *pgx.Conn) error {
	order := "seq"
	if s.reorders {
		order = "seq DESC"
	}
	rows, err := conn.Query(ctx,
		"SELECT id, aggregate_id /* pg_visible_in_snapshot, so that it counts as a read */ FROM public.outbox_events "+
			"WHERE state = 0 ORDER BY "+order+" LIMIT 2000")
	if err != nil {
		return err
	}
	type row struct {
		ID        outbox.ID
		Aggregate string
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	if err != nil {
		return err
	}
	var ids []outbox.ID
	for _, r := range list {
		ids = append(ids, r.ID)
		if s.loses && r.ID[15] == 7 && strings.HasPrefix(r.Aggregate, "thing-") {
			continue
		}
		if err := s.config.Publisher.Publish(ctx, &publish.Message{ID: r.ID, AggregateID: r.Aggregate}); err != nil {
			return err
		}
	}
	_, err = conn.Exec(ctx,
		"UPDATE public.outbox_events SET state = 6, published_at = clock_timestamp() WHERE id = ANY ($1)", ids)
	return err
}

func tiny() pinned.Plan {
	return pinned.Plan{
		URL: services.Postgres18(), Rate: 300, PerTx: 5, Aggregates: 40, Workers: 4, Settle: 200 * time.Millisecond,
		Length:  time.Second,
		Control: time.Second, Dead: 1000, Drain: 3 * time.Minute,
	}
}

// newStandIn makes a stand-in, with a bug where one is given.
func newStandIn(bug func(*standIn)) func(relay.Config) (pinned.Runner, error) {
	return func(config relay.Config) (pinned.Runner, error) {
		s := &standIn{config: config}
		if bug != nil {
			bug(s)
		}
		return s, nil
	}
}

func play(t *testing.T, plan pinned.Plan, newRelay func(relay.Config) (pinned.Runner, error)) *pinned.Report {
	t.Helper()
	report, err := pinned.Run(t.Context(), plan, newRelay, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := report.Print(&text); err != nil {
		t.Fatal(err)
	}
	t.Log(text.String())
	return report
}

func TestMeasuresARelay(t *testing.T) {
	t.Parallel()
	for name, newRelay := range map[string]func(relay.Config) (pinned.Runner, error){
		"ours": pinned.Relay, "stand-in": newStandIn(nil),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := tiny()
			if name == "ours" {
				plan.Dead = 20_000 // enough to tell whether they are looked at
				plan.Beats, plan.DayRounds = 300, 1
			}
			report := play(t, plan, newRelay)
			for _, phase := range []*pinned.Phase{report.Unpinned, report.Snapshot, report.Writer} {
				if phase.Undelivered != 0 || phase.Inverted != 0 || phase.Repeated != 0 || phase.Offered <= 0 || phase.P50 <= 0 ||
					phase.P99 < phase.P50 {
					t.Errorf("%+v", phase)
				}
			}
			if !report.Own.InOrder() {
				t.Errorf("the writer's own: %+v", report.Own)
			}
			if p99 := report.SnapshotControl.P99; name == "stand-in" && p99 < slowly/2 {
				t.Errorf("the control waits %s before every read, and its p99 is %s", slowly, p99)
			}
			if problems := report.Problems(); name == "ours" && len(problems) > 0 {
				t.Errorf("%q", problems)
			}
		})
	}
}

func TestMutantsAreFound(t *testing.T) {
	t.Parallel()
	for name, bug := range map[string]func(*standIn){
		"came before an earlier one": func(s *standIn) { s.reorders = true },
		"were not delivered":         func(s *standIn) { s.loses = true },
		"a read looks at":            func(*standIn) {}, // it knows no watermark
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := tiny()
			plan.Aggregates = 4
			switch name {
			case "were not delivered":
				plan.Drain = time.Second // they never come
			case "a read looks at":
				// Without a pin it looks at what it is behind by, which on a busy machine is much: what it must not look at
				// has to be far more.
				plan.Dead = 60_000
			}
			if problems := strings.Join(play(t, plan, newStandIn(bug)).Problems(), "\n"); !strings.Contains(problems, name) {
				t.Errorf("found: %s", problems)
			}
		})
	}
}
