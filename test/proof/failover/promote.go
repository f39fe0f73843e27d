package failover

import (
	"context"
	"errors"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/torture"
	"github.com/posthaste-dev/posthaste/test/kit/cluster"
)

// strict fails over to a synchronous standby under load: nothing is lost, nothing is invented.
func (p *Proof) strict(ctx context.Context) (_ *torture.Report, err error) {
	clusters, err := newPair(ctx, true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, clusters.close()) }()
	plan, err := p.plan("strict", cluster.URL(clusters.primary, clusters.standby), p.size(6000, 2500),
		time.Duration(p.size(12, 5))*time.Second)
	if err != nil {
		return nil, err
	}
	plan.Schedule = []torture.Fault{
		torture.Once(check.DatabaseDown, plan.Production/3,
			func(ctx context.Context, _ *torture.Target) (check.Fault, error) {
				return clusters.failOver(ctx)
			}),
	}
	return torture.Run(ctx, plan, p)
}
