package relaytest

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/posthaste-dev/posthaste/relay"
)

// closing: Close waits for what is in flight or fails it, ends every goroutine of the publisher, and
// leaves one that fails.
func closing(ctx context.Context, s *scene) error {
	mark := rand.Text()
	var (
		publisher relay.Publisher
		stored    []*relay.Message
		err       error
	)
	// Goroutines inherit the label of the one that starts them, so those of the publisher are told from
	// all others that a test binary has.
	pprof.Do(ctx, pprof.Labels("relaytest", mark), func(ctx context.Context) {
		publisher, stored, err = closeUnderLoad(ctx, s)
	})
	if err != nil {
		return err
	}
	if _, err := s.checkArrived(ctx, stored, false); err != nil {
		return err
	}
	if s.waitFor(ctx, func() bool { return len(labelled(mark)) == 0 }) != nil {
		s.problemf("a goroutine of the publisher is left after Close:\n%s", labelled(mark)[0])
	}
	switch class := classOf(s.publish(ctx, publisher, NewMessage(s.topic, 1, 9999), s.harness.Deadline)); class {
	case routeFault, unknown:
	case acknowledged, rejected, terminal:
		s.problemf("a publish after Close has class %s", class)
	}
	return nil
}

// closeUnderLoad closes a publisher in the middle of its work and returns what was acknowledged.
func closeUnderLoad(ctx context.Context, s *scene) (relay.Publisher, []*relay.Message, error) {
	publisher, closeIt, err := s.harness.Open(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("harness: opening a publisher: %w", err)
	}
	var (
		group  sync.WaitGroup
		acks   atomic.Int64
		keys   = make([][]*relay.Message, 8)
		broken = make(chan struct{})
	)
	for worker := range keys {
		group.Go(func() {
			for number := range 5000 {
				message := NewMessage(s.topic, worker, int64(worker*5000+number))
				err := s.publish(ctx, publisher, message, s.harness.Deadline)
				if err != nil {
					if class := classOf(err); class != routeFault && class != unknown {
						s.problemf("a publish that Close interrupted has class %s: %v", class, err)
					}
					return
				}
				keys[worker] = append(keys[worker], message)
				acks.Add(1)
				select {
				case <-broken:
					return
				default:
				}
			}
		})
	}
	err = s.waitFor(ctx, func() bool { return acks.Load() >= 20 })
	if closeErr := closeIt(); closeErr != nil {
		s.problemf("closing the publisher: %v", closeErr)
	}
	close(broken)
	group.Wait()
	return publisher, slices.Concat(keys...), err
}

// labelled lists goroutines that have the label.
func labelled(mark string) []string {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		return []string{err.Error()}
	}
	var found []string
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(stack, mark) {
			found = append(found, stack)
		}
	}
	return found
}
