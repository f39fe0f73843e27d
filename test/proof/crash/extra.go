package crash

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// The trials without a point.
const (
	// Stops is relays that are asked to stop in the middle of their work, one after the other: C18.
	Stops = "stops"
	// Poison is an event that kills every relay that publishes it, C17, and that somebody redrives, D11.
	Poison = "poison"
)

// mostDeaths is how many relays an event may kill: three until its lane is treated with care, three with its name
// noted, and two in between, where the first careful one settled another event of the lane and so began the count
// anew.
const mostDeaths = 8

// extra is the play of a trial without a point: all of it but the last relay, which it returns.
func (t *trial) extra(ctx context.Context) (*child, error) {
	t.outcome.Hit = true
	if t.name == Poison {
		return t.poison(ctx)
	}
	return t.stops(ctx)
}

// eventsOfARound is what there is to do for a relay that is asked to stop after someOfARound.
const (
	eventsOfARound = 24
	someOfARound   = 4
)

// stops asks relays to stop in the middle, and wants nothing to come twice of it.
func (t *trial) stops(ctx context.Context) (*child, error) {
	for range t.plan.Rounds {
		if err := t.produce(ctx, eventsOfARound); err != nil {
			return nil, err
		}
		before, err := t.env.Arrivals(ctx)
		if err != nil {
			return nil, err
		}
		p, err := t.start(task{Role: relays}, "")
		if err != nil {
			return nil, err
		}
		if err := t.arrivals(ctx, p, before+someOfARound); err != nil {
			return nil, err
		}
		if err := p.leave(ctx); err != nil {
			t.problemf("%v", err)
		}
		t.outcome.Stops++
	}
	return t.start(task{Role: relays}, "")
}

// arrivals waits until so many messages have arrived.
func (t *trial) arrivals(ctx context.Context, p *child, enough uint64) error {
	for deadline := time.Now().Add(t.plan.Patience); p.Alive() && time.Now().Before(deadline); {
		n, err := t.env.Arrivals(ctx)
		if err != nil || n >= enough {
			return err
		}
		if err := wait.For(ctx, 2*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// poison starts relays until the event that kills them is quarantined. Then it is redriven, and must be
// quarantined once more.
func (t *trial) poison(ctx context.Context) (*child, error) {
	if err := t.produce(ctx, t.plan.Events); err != nil {
		return nil, err
	}
	p, err := t.start(task{Role: relays}, "")
	if err == nil {
		p, err = t.poisoned(ctx, p, 1)
	}
	if err != nil || len(t.outcome.Problems) > 0 {
		return p, err
	}
	if err := t.redrivePoison(ctx); err != nil {
		return nil, err
	}
	if p, err = t.poisoned(ctx, p, 2); err != nil {
		return nil, err
	}
	return p, t.countPoisoned(ctx)
}

// poisoned starts the next relay when one has died, until the event is quarantined for the given time.
func (t *trial) poisoned(ctx context.Context, p *child, quarantines int) (*child, error) {
	for range mostDeaths + 1 {
		quarantined, err := t.outlives(ctx, p, quarantines)
		switch {
		case err != nil:
			return nil, err
		case quarantined:
			return p, nil
		case p.Alive():
			t.problemf("the event is neither quarantined nor does it kill")
			return p, nil
		}
		t.outcome.Kills++
		if err := t.died(ctx, p, check.Kill); err != nil {
			return nil, err
		}
		if p, err = t.start(task{Role: relays}, ""); err != nil {
			return nil, err
		}
	}
	t.problemf("the event is not quarantined after %d deaths", mostDeaths+1)
	return p, nil
}

// outlives waits until the event is quarantined or has killed the relay.
func (t *trial) outlives(ctx context.Context, p *child, quarantines int) (quarantined bool, err error) {
	const count = "SELECT count(*) >= $1 FROM {schema}.outbox_dlq WHERE error_reason = 'crash_suspect'"
	for deadline := time.Now().Add(t.plan.Patience); ; {
		over := !p.Alive() || time.Now().After(deadline)
		if err := t.env.Pool.QueryRow(ctx, t.env.SQL(count), quarantines).Scan(&quarantined); err != nil {
			return false, fmt.Errorf("crash: %w", err)
		}
		if quarantined || over {
			return quarantined, nil
		}
		if err := wait.For(ctx, 20*time.Millisecond); err != nil {
			return false, err
		}
	}
}

// redrivePoison sends the event out again as it is.
func (t *trial) redrivePoison(ctx context.Context) error {
	var l letter
	err := t.env.Pool.QueryRow(ctx,
		t.env.SQL("SELECT id, event_id FROM {schema}.outbox_dlq WHERE error_reason = 'crash_suspect'")).Scan(&l.Number,
		&l.Event)
	if err != nil {
		return fmt.Errorf("crash: %w", err)
	}
	if err := t.decide(ctx, l.Event); err != nil { // about all the others: they are not seen again
		return err
	}
	_, err = operator.New(t.env.Pool, t.env.Run).Redrive(ctx, operator.Action{
		ID: outbox.NewID(), Actor: actor, Reason: "a proof",
	}, l.Event)
	return err
}

// countPoisoned looks at who has died of the poison.
func (t *trial) countPoisoned(ctx context.Context) error {
	var mates int
	err := t.env.Pool.QueryRow(ctx, t.env.SQL(`SELECT count(*) FROM {schema}.outbox_dlq WHERE error_reason = `+
		`'crash_suspect'
		AND payload_json #>> '{data,fate}' IS DISTINCT FROM 'poison'`)).Scan(&mates)
	if err != nil {
		return fmt.Errorf("crash: %w", err)
	}
	if mates > 0 {
		t.problemf("%d events that kill nobody are quarantined", mates)
	}
	deaths, err := os.ReadFile(filepath.Join(t.folder, deathsFile))
	if err != nil {
		return fmt.Errorf("crash: nobody died: %w", err)
	}
	if t.outcome.Poisoned = strings.Count(string(deaths), "\n"); t.outcome.Poisoned > 2*mostDeaths {
		t.problemf("%d relays died of one event that was sent out twice, at most %d may", t.outcome.Poisoned, 2*mostDeaths)
	}
	return nil
}
