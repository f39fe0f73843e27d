package relay

import (
	"log/slog"

	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// observe logs the steps that people should know of, and passes all of them on. Payloads are never logged.
func (s *shell) observe(step core.Step) {
	config := &s.relay.config
	if step.Request == 0 { // a copy says nothing about how far the events are
		s.minutes.Observe(&step)
	}
	if config.Observe != nil {
		config.Observe(newStep(&step))
	}
	switch step.Do {
	case core.DidAck:
		s.logPublished(step)
	case core.DidRefuse:
		s.logAttempt(slog.LevelWarn, step.Class.String(), step)
	case core.DidSettle:
		if step.Result == core.Applied && (step.State == core.Dead || step.State == core.DeadBlocking) {
			s.logAttempt(slog.LevelError, "dead", step)
		}
		if step.Result == core.Stale {
			s.logAttempt(slog.LevelWarn, "settled too late: the lane is another relay's", step)
		}
		if step.Result == core.Unchanged {
			s.logAttempt(slog.LevelInfo, "settled too late: somebody else has changed the event, which is read again", step)
		}
	case core.DidAcquire, core.DidRelease:
		config.Logger.DebugContext(s.work, "lane", slog.String("step", string(step.Do)), slog.Int("lane", int(step.Lane)))
	case core.DidLose:
		config.Logger.WarnContext(s.work, "lane lost", slog.Int("lane", int(step.Lane)), slog.String("reason", step.Detail))
	case core.DidPause:
		if !step.Redelivered { // else no event waits for it
			s.relay.paused.add(step.Topic, step.Detail)
		}
		config.Logger.ErrorContext(s.work, "topic paused", slog.String("topic", step.Topic),
			slog.String("error", step.Detail))
	case core.DidResume:
		s.relay.paused.remove(step.Topic)
		config.Logger.InfoContext(s.work, "topic resumed", slog.String("topic", step.Topic))
	case core.DidForget:
		config.Logger.InfoContext(s.work, "topic forgotten: no copy goes there any more", slog.String("topic", step.Topic))
	case core.DidAlarm:
		config.Logger.ErrorContext(s.work, "alarm", slog.String("detail", clean.Text(step.Detail)),
			slog.Int("lane", int(step.Lane)))
	case core.DidFail:
		config.Logger.WarnContext(s.work, "the database failed", slog.String("call", string(step.Op)),
			slog.String("error", clean.Text(step.Detail)))
	case core.DidSettleRequest:
		if step.Result == core.Applied && step.Ended == core.RequestFailed {
			s.logAttempt(slog.LevelError, "not delivered again", step)
		}
	case core.DidRenew, core.DidPublish, core.DidCharge:
	}
}

// logPublished writes one line for each so many published events.
func (s *shell) logPublished(step core.Step) {
	config := &s.relay.config
	if !config.LogPublished {
		return
	}
	sample := max(1, config.SamplePublished)
	s.acknowledged++
	switch {
	case sample == 1:
		s.logAttempt(slog.LevelInfo, "published", step)
	case s.acknowledged%sample == 1:
		s.logAttempt(slog.LevelInfo, "published", step, slog.Int("sampled", sample))
	}
}

func (s *shell) logAttempt(level slog.Level, outcome string, step core.Step, more ...slog.Attr) {
	if step.Request != 0 {
		more = append(more, slog.Int64("request", step.Request))
	}
	s.relay.config.Logger.LogAttrs(s.work, level, "event", append([]slog.Attr{
		slog.String("event_id", step.Event.String()), slog.String("event_type", clean.Cut(step.Type)),
		slog.String("aggregate_type", clean.Cut(step.Aggregate.Type)),
		slog.String("aggregate_id", clean.Cut(step.Aggregate.ID)),
		slog.String("topic", step.Topic), slog.Int("attempt", step.Attempt), slog.Bool("redelivered", step.Redelivered),
		slog.String("outcome", outcome), slog.String("error", step.Detail),
	}, more...)...)
}
