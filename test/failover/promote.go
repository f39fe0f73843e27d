package failover

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/test/cluster"
	"github.com/posthaste-dev/posthaste/torture"
)

// strict fails over to a synchronous standby under load: nothing is lost, nothing is invented.
func (p *Proof) strict(ctx context.Context) (_ *torture.Report, err error) {
	clusters, err := newPair(ctx, true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, clusters.close()) }()
	plan, err := p.plan("strict", cluster.URL(clusters.primary, clusters.standby), p.size(6000, 2500), time.Duration(p.size(12, 5))*time.Second)
	if err != nil {
		return nil, err
	}
	plan.Storm = []torture.Blow{torture.Once(check.DatabaseDown, plan.Production/3, func(ctx context.Context, _ *torture.Target) (check.Fault, error) {
		return clusters.failOver(ctx)
	})}
	return torture.Run(ctx, plan, p)
}

// lostAtLeast is how many events the asynchronous standby must miss that the old primary's relays have published.
const lostAtLeast = 20

// asynchronous fails over to a standby that misses the last commits: those are lost, and what was published of them
// is a phantom. What the new primary has is delivered.
func (p *Proof) asynchronous(ctx context.Context) (_ *torture.Report, err error) {
	clusters, err := newPair(ctx, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, clusters.close()) }()
	plan, err := p.plan("asynchronous", cluster.URL(clusters.primary, clusters.standby), p.size(4000, 2000), time.Duration(p.size(10, 4))*time.Second)
	if err != nil {
		return nil, err
	}
	plan.Forgetful, plan.Doomed = true, none
	plan.Storm = []torture.Blow{torture.Once(check.DatabaseDown, plan.Production/3, func(ctx context.Context, on *torture.Target) (check.Fault, error) {
		from := time.Now().UnixMicro() // what was settled after this is lost as well, and comes again
		if err := clusters.standby.Detach(ctx); err != nil {
			return check.Fault{}, err
		}
		since, err := clusters.primary.Text(ctx, "clock_timestamp()")
		if err != nil {
			return check.Fault{}, err
		}
		err = cluster.Within(ctx, patience, "what the standby misses is published", func() (bool, error) {
			count, err := clusters.primary.Text(ctx, on.World.SQL("SELECT count(*) FROM {schema}.outbox_events WHERE state = 6 AND created_at > $1::text::timestamptz"), since)
			n, _ := strconv.Atoi(count)
			return n >= lostAtLeast, err
		})
		if err != nil {
			return check.Fault{}, err
		}
		fault, err := clusters.failOver(ctx)
		fault.From = from
		return fault, err
	})}
	report, err := torture.Run(ctx, plan, p)
	if err != nil {
		return nil, err
	}
	// What the new primary numbers again must not be taken for known.
	late, err := said(plan.Folder, "below the lane's floor")
	if late > 0 {
		report.Problems = append(report.Problems, fmt.Sprintf("%d alarms about events below the floor", late))
	}
	return report, err
}

// none leaves out the events that are refused for good: what operators decided about them would be lost as well.
const none = -1
