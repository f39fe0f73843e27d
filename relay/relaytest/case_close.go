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

	"github.com/posthaste-dev/posthaste/publish"
)

// closing: Close waits for what is in flight or fails it, ends every goroutine of the publisher, and
// leaves one that fails.
func closing(ctx context.Context, e *env) error {
	mark := rand.Text()
	var (
		publisher publish.Publisher
		stored    []*publish.Message
		err       error
	)
	// Goroutines inherit the label of the one that starts them, so those of the publisher are told from
	// all others that a test binary has.
	pprof.Do(ctx, pprof.Labels("relaytest", mark), func(ctx context.Context) {
		publisher, stored, err = closeUnderLoad(ctx, e)
	})
	if err != nil {
		return err
	}
	if _, err := e.checkArrived(ctx, stored, false); err != nil {
		return err
	}
	if e.waitFor(ctx, func() bool { return len(labelled(mark)) == 0 }) != nil {
		e.problemf("a goroutine of the publisher is left after Close:\n%s", labelled(mark)[0])
	}
	switch class := publish.ClassOf(e.publish(ctx, publisher, NewMessage(e.topic, 1, 9999), e.harness.Deadline)); class {
	case publish.TopicFault, publish.Unknown, publish.NotSent:
	case publish.Published, publish.Rejected, publish.Terminal:
		e.problemf("a publish after Close has class %s", class)
	}
	return nil
}

// closeUnderLoad closes a publisher in the middle of its work and returns what was acknowledged.
func closeUnderLoad(ctx context.Context, e *env) (publish.Publisher, []*publish.Message, error) {
	publisher, closeIt, err := e.harness.Open(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("harness: opening a publisher: %w", err)
	}
	var (
		group  sync.WaitGroup
		acks   atomic.Int64
		keys   = make([][]*publish.Message, 8)
		broken = make(chan struct{})
	)
	for worker := range keys {
		group.Go(func() {
			for number := range 5000 {
				message := NewMessage(e.topic, worker, int64(worker*5000+number))
				err := e.publish(ctx, publisher, message, e.harness.Deadline)
				if err != nil {
					if class := publish.ClassOf(err); charges(class) {
						e.problemf("a publish that Close interrupted has class %s: %v", class, err)
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
	err = e.waitFor(ctx, func() bool { return acks.Load() >= 20 })
	if closeErr := closeIt(); closeErr != nil {
		e.problemf("closing the publisher: %v", closeErr)
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
