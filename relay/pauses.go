package relay

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// sayPauseAgain is how often the log names a pause that stands.
const sayPauseAgain = 10 * time.Minute

// standing is what operators have paused, as of the last heartbeat.
type standing struct {
	mutex  sync.Mutex
	pauses []operator.Pause
	saidAt time.Time
}

// OperatorPauses returns what operators have paused, as of this relay's last heartbeat, by scope and name. It may be
// called at any time.
func (r *Relay) OperatorPauses() []operator.Pause {
	r.standing.mutex.Lock()
	defer r.standing.mutex.Unlock()
	return slices.Clone(r.standing.pauses)
}

// applyPauses takes in what a heartbeat has reported, and logs what is new.
func (r *Relay) applyPauses(ctx context.Context, reported []core.Pause) {
	pauses := make([]operator.Pause, len(reported))
	for i, p := range reported {
		pauses[i] = operator.Pause{
			Scope: operator.Scope{Kind: string(p.Scope), Name: clean.Cut(p.Name)}, Actor: clean.Text(p.Actor),
			Reason: clean.Text(p.Reason), Since: p.Since.UTC(),
		}
	}
	s := &r.standing
	s.mutex.Lock()
	before, again := s.pauses, time.Since(s.saidAt) >= sayPauseAgain
	if again {
		s.saidAt = time.Now()
	}
	s.pauses = pauses
	s.mutex.Unlock()
	for _, p := range pauses {
		if again || !slices.Contains(before, p) {
			r.sayStanding(ctx, p)
		}
	}
	for _, p := range before {
		if !slices.ContainsFunc(pauses, func(other operator.Pause) bool { return other.Scope == p.Scope }) {
			r.config.Logger.InfoContext(ctx, "resumed by an operator", slog.String("scope", p.Kind), slog.String("name", p.Name))
		}
	}
}

func (r *Relay) sayStanding(ctx context.Context, p operator.Pause) {
	attributes := []slog.Attr{
		slog.String("scope", p.Kind), slog.String("name", p.Name), slog.String("actor", p.Actor),
		slog.String("reason", p.Reason),
		slog.Time("since", p.Since),
		slog.String("go_on",
			"`outboxctl resume`, operator.Operator.Resume, or SELECT outbox_resume('who', 'why', 'scope', 'name')"),
	}
	if !r.concerns(p.Scope) {
		attributes = append(attributes, slog.String("unknown", "this relay publishes nothing of that name"))
	}
	r.config.Logger.LogAttrs(ctx, slog.LevelWarn, "paused by an operator", attributes...)
}

// concerns tells whether this relay publishes anything of the scope: a name may be mistyped.
func (r *Relay) concerns(scope operator.Scope) bool {
	return scope == operator.AllScope || slices.ContainsFunc(r.config.Registry.Types(), func(eventType string) bool {
		contract, _ := r.config.Registry.Contract(eventType)
		return scope.Covers(contract.Topic, eventType)
	})
}
