package torture

import (
	"context"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
)

// Once is a fault that is injected once, about so long after the beginning, and must.
func Once(kind check.FaultKind, after time.Duration,
	inject func(ctx context.Context, on *Target) (check.Fault, error),
) Fault {
	done := false
	return Fault{Kind: kind, Every: after, Least: 1, Inject: func(ctx context.Context, on *Target) (check.Fault, error) {
		if done {
			return check.Fault{}, errScheduleOver
		}
		done = true
		return inject(ctx, on)
	}}
}
