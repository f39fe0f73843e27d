package relaytest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/posthaste-dev/posthaste/publish"
)

// mustBeUnknown holds an error to one of the classes that leave open whether the broker has the message.
func (e *env) mustBeUnknown(err error, what string) {
	switch class := publish.ClassOf(err); class {
	case publish.Unknown, publish.TopicFault:
	case publish.Published, publish.Rejected, publish.Terminal, publish.NotSent:
		e.problemf("%s: nobody knows whether the broker has the message, yet the class is %s: %v", what, class, err)
	}
}

// cancelled: a context that has ended ends the publish, and charges nobody.
func cancelled(ctx context.Context, e *env) error {
	publisher, err := e.open(ctx)
	if err != nil {
		return err
	}
	message := NewMessage(e.topic, 1, 1)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	err = e.publish(ended, publisher, message, e.harness.Deadline)
	if publish.ClassOf(err) != publish.NotSent { // as it should be, and who cannot tell says that nobody knows
		e.mustBeUnknown(err, "a context that was cancelled before")
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		e.problemf("a context that was cancelled before: the error should wrap context.Canceled: %v", err)
	}
	if _, err := e.publishThrough(ctx, publisher, message); err != nil {
		return err
	}
	_, err = e.checkArrived(ctx, []*publish.Message{message}, true)
	return err
}

// slow: a publish whose acknowledgement does not come ends with its context.
func slow(ctx context.Context, e *env) error {
	publisher, err := e.open(ctx)
	if err != nil {
		return err
	}
	messages := slices.Concat(perKey(e.topic, 8, 1)...)
	if err := e.mustPublish(ctx, publisher, NewMessage(e.topic, 100, 100)); err != nil {
		return err
	}
	end, err := e.begin(ctx, e.harness.Slow)
	if err != nil {
		return err
	}
	var group sync.WaitGroup
	for _, message := range messages {
		group.Go(func() {
			e.mustBeUnknown(e.publish(ctx, publisher, message, 300*time.Millisecond), "a deadline that passed")
		})
	}
	group.Go(func() {
		given, giveUp := context.WithCancel(ctx)
		defer giveUp()
		timer := time.AfterFunc(100*time.Millisecond, giveUp)
		defer timer.Stop()
		e.mustBeUnknown(e.publish(given, publisher, NewMessage(e.topic, 101, 101), time.Minute),
			"a context that was cancelled meanwhile")
	})
	group.Wait()
	e.use(Slow)
	end()
	for _, message := range messages {
		if _, err := e.publishThrough(ctx, publisher, message); err != nil {
			return fmt.Errorf("after the broker was slow: %w", err)
		}
	}
	_, err = e.checkArrived(ctx, messages, !e.can(Dedupe))
	return err
}

// lostAck: the broker has the message and its answer is lost. That is unknown, or an outage, never a rejection; sent
// again it is a copy at most.
func lostAck(ctx context.Context, e *env) error {
	publisher, err := e.open(ctx)
	if err != nil {
		return err
	}
	first, second := NewMessage(e.topic, 1, 1), NewMessage(e.topic, 1, 2)
	if err := e.mustPublish(ctx, publisher, NewMessage(e.topic, 100, 100)); err != nil {
		return err
	}
	end, err := e.begin(ctx, e.harness.LoseAck)
	if err != nil {
		return err
	}
	e.mustBeUnknown(e.publish(ctx, publisher, first, time.Second), "an acknowledgement that was lost")
	var arrived []Arrived
	_ = e.waitFor(ctx, func() bool { // the broker may not be so far yet when the publisher gives up
		arrived, err = e.arrived(ctx)
		return err != nil || copies(arrived)[first.ID.String()] > 0
	})
	if err != nil {
		return err
	}
	if copies(arrived)[first.ID.String()] == 0 {
		return errors.New("harness: LoseAck lost the message, and not only its acknowledgement")
	}
	e.use(LoseAck)
	end()
	for _, message := range []*publish.Message{first, second} {
		if _, err := e.publishThrough(ctx, publisher, message); err != nil {
			return fmt.Errorf("after a lost acknowledgement: %w", err)
		}
	}
	dedupes := e.can(Dedupe)
	arrived, err = e.checkArrived(ctx, []*publish.Message{first, second}, !dedupes)
	if err != nil {
		return err
	}
	if dedupes {
		e.use(Dedupe)
	}
	if e.can(Order) {
		e.checkOrder(arrived, [][]*publish.Message{{first, second}})
	}
	return nil
}

// restartUnderLoad: the broker goes away under load and comes back. Nothing that was acknowledged is
// lost, no event is charged, and the publisher finds its way back by itself.
func restartUnderLoad(ctx context.Context, e *env) error {
	publisher, err := e.open(ctx)
	if err != nil {
		return err
	}
	const workers, least = 8, 10
	var (
		group        sync.WaitGroup
		keys         = make([][]*publish.Message, workers)
		acks, losses atomic.Int64
		back         = make(chan struct{})
	)
	defer func() {
		select {
		case <-back:
		default:
			close(back)
		}
		group.Wait()
	}()
	for worker := range keys {
		group.Go(func() {
			for number, after := 0, 0; after < least; number++ {
				message := NewMessage(e.topic, worker, int64(worker*100_000+number))
				failures, err := e.publishThrough(ctx, publisher, message)
				losses.Add(int64(failures))
				if err != nil {
					e.problemf("restart: %v", err)
					return
				}
				keys[worker] = append(keys[worker], message)
				acks.Add(1)
				select {
				case <-back:
					after++
				default:
				}
			}
		})
	}
	if err := e.waitFor(ctx, func() bool { return acks.Load() >= workers*least }); err != nil {
		return errors.New("restart: the publisher got nothing through before the broker stopped")
	}
	end, err := e.begin(ctx, e.harness.Stop)
	if err != nil {
		return err
	}
	// Down for long enough that all workers are in the middle of it, and until one has seen it.
	stopped, failed := acks.Load(), e.failures.Load()
	pause(ctx, 300*time.Millisecond)
	if now := acks.Load(); now > stopped+workers {
		e.problemf("harness: %d messages were acknowledged while the broker was stopped", now-stopped)
	} else {
		_ = e.waitFor(ctx, func() bool { return e.failures.Load() > failed })
	}
	end()
	close(back)
	group.Wait()
	if losses.Load() == 0 {
		e.problemf("harness: no publish failed while the broker was stopped")
	}
	e.use(Stop)
	arrived, err := e.checkArrived(ctx, slices.Concat(keys...), true)
	if err != nil {
		return err
	}
	if e.can(Order) {
		e.checkOrder(arrived, keys)
	}
	return nil
}

// waitFor asks until the answer is yes, for as long as a recovery may take.
func (e *env) waitFor(ctx context.Context, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, e.harness.Recovery)
	defer cancel()
	for !done() {
		if !pause(ctx, 2*time.Millisecond) {
			return ctx.Err()
		}
	}
	return nil
}

// abandoned: what failed while the broker was down is not sent by the client when the broker is back: by
// then another relay may hold the lane, and have sent what comes after.
func abandoned(ctx context.Context, e *env) error {
	publisher, err := e.open(ctx)
	if err != nil {
		return err
	}
	if err := e.mustPublish(ctx, publisher, NewMessage(e.topic, 1, 1)); err != nil {
		return err
	}
	end, err := e.begin(ctx, e.harness.Stop)
	if err != nil {
		return err
	}
	var group sync.WaitGroup
	given := slices.Concat(perKey(e.topic, 8, 1)...)
	for _, message := range given {
		group.Go(func() {
			err := e.publish(ctx, publisher, message, 500*time.Millisecond)
			if class := publish.ClassOf(err); class == publish.Published || charges(class) {
				e.problemf("the broker is down, and Publish returned class %s: %v", class, err)
			}
		})
	}
	group.Wait()
	end()
	if _, err := e.publishThrough(ctx, publisher, NewMessage(e.topic, 1, 2)); err != nil {
		return err
	}
	pause(ctx, time.Second) // what is not sent cannot be waited for
	arrived, err := e.arrived(ctx)
	if err != nil {
		return err
	}
	count := copies(arrived)
	for _, message := range given {
		if count[message.ID.String()] > 0 {
			e.problemf("event %d was given up while the broker was down, and sent later all the same", message.Seq)
		}
	}
	e.use(Abandon)
	return nil
}

// hangingKeys are more than a client has requests under way where it bounds them.
const hangingKeys = 512

// abandonedInAHang: a broker takes requests and does not answer, and all of it is given up. What waited inside the
// client for its turn must not be sent when the broker answers again.
func abandonedInAHang(ctx context.Context, e *env) error {
	publisher, closeIt, err := e.harness.Open(ctx)
	if err != nil {
		return fmt.Errorf("harness: opening a publisher: %w", err)
	}
	closed := sync.OnceFunc(func() {
		if err := closeIt(); err != nil {
			e.problemf("closing the publisher: %v", err)
		}
	})
	defer closed()
	if err := e.mustPublish(ctx, publisher, NewMessage(e.topic, hangingKeys, 1)); err != nil {
		return err
	}
	end, err := e.begin(ctx, e.harness.Hang)
	if err != nil {
		return err
	}
	var group sync.WaitGroup
	given := slices.Concat(perKey(e.topic, hangingKeys, 1)...)
	for _, message := range given {
		group.Go(func() {
			err := e.publish(ctx, publisher, message, time.Second)
			if class := publish.ClassOf(err); class == publish.Published || charges(class) {
				e.problemf("the broker hangs, and Publish returned class %s: %v", class, err)
			}
		})
	}
	group.Wait()
	end()
	if _, err := e.publishThrough(ctx, publisher, NewMessage(e.topic, hangingKeys, 2)); err != nil {
		return err
	}
	closed()                // it sends what it has
	pause(ctx, time.Second) // what is not sent cannot be waited for
	arrived, err := e.arrived(ctx)
	if err != nil {
		return err
	}
	later, count := 0, copies(arrived)
	for _, message := range given {
		later += count[message.ID.String()]
	}
	if later > 0 {
		e.problemf("%d of %d events were given up while the broker hung, and sent later all the same", later, len(given))
	}
	e.use(Hang)
	return nil
}
