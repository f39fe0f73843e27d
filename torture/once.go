package torture

import (
	"context"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
)

// Once is a blow that falls once, about so long after the beginning, and must.
func Once(kind check.FaultKind, after time.Duration, strike func(ctx context.Context, on *Target) (check.Fault, error)) Blow {
	fallen := false
	return Blow{Kind: kind, Every: after, Least: 1, Strike: func(ctx context.Context, on *Target) (check.Fault, error) {
		if fallen {
			return check.Fault{}, errStormOver
		}
		fallen = true
		return strike(ctx, on)
	}}
}
