package pubsubbroker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc/status"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/internal/wait"
)

// How often Pub/Sub is asked about the topics: until it has answered, and then while something is wrong. When all is
// well it is not asked again; what breaks later is seen by the events.
const (
	firstRetry  = time.Second
	checkEvery  = time.Minute
	checkWithin = 10 * time.Second
)

// topics knows what Pub/Sub says about the topics of the registry.
type topics struct {
	names  []string
	check  func(context.Context, []string) ([]googlepubsub.Finding, error)
	logger *slog.Logger

	end     context.CancelFunc
	running sync.WaitGroup
	asked   chan struct{} // closed when Pub/Sub was asked once

	mutex   sync.Mutex
	known   bool // it has answered
	problem error
	told    map[googlepubsub.Finding]bool
}

func watchTopics(ctx context.Context, publisher *googlepubsub.Publisher, names []string, logger *slog.Logger) *topics {
	t := &topics{names: names, check: publisher.Check, logger: logger}
	t.start(ctx)
	return t
}

// start begins to ask, until close.
func (t *topics) start(ctx context.Context) {
	t.asked, t.told = make(chan struct{}), map[googlepubsub.Finding]bool{}
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	t.end = end
	if len(t.names) == 0 { // nothing is known about them
		close(t.asked)
		return
	}
	t.running.Go(func() { t.watch(ctx) })
}

// close ends the asking.
func (t *topics) close() {
	t.end()
	t.running.Wait()
}

// ready says why nothing at all can be published. It asks nobody.
func (t *topics) ready(ctx context.Context) error {
	select {
	case <-t.asked:
	case <-ctx.Done():
		return errors.New("Pub/Sub has not answered yet")
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.problem
}

func (t *topics) watch(ctx context.Context) {
	for pause := firstRetry; ; pause = min(2*pause, checkEvery) {
		again := t.look(ctx)
		if pause == firstRetry {
			close(t.asked)
		}
		if !again || wait.For(ctx, pause) != nil {
			return
		}
	}
}

// look asks once, logs what is new, and tells whether to ask again.
func (t *topics) look(ctx context.Context) (again bool) {
	ctx, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	findings, err := t.check(ctx, t.names)
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if err != nil {
		if !t.known { // later it is an outage, which the events see
			t.problem = fmt.Errorf("the topics cannot be looked at: %s", status.Code(err))
			t.logger.DebugContext(ctx, "Pub/Sub could not be asked about the topics", slog.String("error", err.Error()))
		}
		return true
	}
	t.known = true
	unusable := 0
	for _, finding := range findings {
		switch finding.Code {
		case googlepubsub.TopicMissing, googlepubsub.TopicForbidden, googlepubsub.TopicInvalid:
			unusable++
		}
		if !t.told[finding] {
			t.told[finding] = true
			t.logger.Log(ctx, finding.Level, "the check of the topics", slog.String("code", finding.Code),
				slog.String("finding", finding.Text))
		}
	}
	t.problem = nil
	if unusable == len(t.names) {
		t.problem = errors.New(findings[0].Text)
		if unusable > 1 {
			t.problem = fmt.Errorf("none of the %d topics can be published to, for instance: %s", unusable, findings[0].Text)
		}
	}
	return unusable > 0
}
