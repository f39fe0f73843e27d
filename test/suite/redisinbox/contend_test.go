package redisinbox

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/posthaste-dev/posthaste/inbox/redisinbox"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

// lapseHeld lets a hold lapse, and leaves what is done.
var lapseHeld = redis.NewScript(`
	if string.sub(redis.call('GET', KEYS[1]) or '', 1, 5) ~= 'held:' then return 0 end
	return redis.call('DEL', KEYS[1])`)

// tally counts what happened to one event.
type tally struct {
	sync.Mutex
	finished, lapses, lost int
}

// Many contend for the same events at the same time, while holds lapse under them: none is lost, none is taken for
// handled before it is, and an effect happens once more only for a hold that lapsed. It goes on until all of that was
// seen.
func TestContenders(t *testing.T) {
	t.Parallel()
	lapses, twice, lost := 0, 0, 0
	for round := uint64(0); lapses == 0 || twice == 0 || lost == 0; round++ {
		if round == 20 {
			t.Fatalf("%d holds lapsed, %d effects happened twice, %d were told: too little was tested", lapses, twice, lost)
		}
		l, again, told := contenders(t, round)
		lapses, twice, lost = lapses+l, twice+again, lost+told
	}
	t.Logf("%d holds lapsed, %d effects happened once more, %d were told that they had lost their hold", lapses,
		twice, lost)
}

// contenders is one round, and returns how many holds lapsed, effects happened once more, and were told that they had
// lost their hold.
func contenders(t *testing.T, round uint64) (lapses, twice, lost int) {
	t.Helper()
	const events, many = 40, 8
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	defer cancel()
	client := connect(t, services.Redis())
	envs, tallies := make([]env, events), make([]tally, events)
	for n := range events {
		envs[n] = newEnv(t, long)
		envs[n].client = client
	}
	var group sync.WaitGroup
	for number := range uint64(many) {
		random := rand.New(rand.NewPCG(round, number))
		group.Go(func() {
			for n := range events {
				contend(ctx, t, random, envs[n], &tallies[n])
			}
		})
	}
	group.Wait()
	for n := range events {
		got := &tallies[n]
		if got.finished == 0 || got.finished-1 > got.lapses || got.lost > got.lapses {
			t.Errorf("event %d: handled %d times, %d holds lapsed, %d were told so", n, got.finished, got.lapses, got.lost)
		}
		lapses, twice, lost = lapses+got.lapses, twice+got.finished-1, lost+got.lost
		already, err := envs[n].do(t.Context(), unwanted(t))
		wantAlready(t, already, err)
	}
	return lapses, twice, lost
}

// contend delivers an event until it may be acknowledged. Handlers fail, panic and lose their hold.
func contend(ctx context.Context, t *testing.T, random *rand.Rand, s env, got *tally) {
	for {
		already, err := attempt(ctx, random, s, got)
		got.Lock()
		finished := got.finished
		if _, lost := errors.AsType[*redisinbox.LostError](err); lost {
			got.lost++
		}
		got.Unlock()
		if already && finished == 0 {
			t.Error("an event that nobody has handled was taken for handled")
		}
		if redisinbox.Handled(err) {
			return
		}
		var held *redisinbox.HeldError
		if !errors.As(err, &held) && !errors.Is(err, errFailed) && !errors.Is(err, errPanicked) {
			t.Error(err)
			return
		}
		select {
		case <-time.After(time.Duration(random.IntN(3)) * time.Millisecond):
		case <-ctx.Done():
			t.Errorf("an event was not handled in time: %v", err)
			return
		}
	}
}

func attempt(ctx context.Context, random *rand.Rand, s env, got *tally) (already bool, err error) {
	defer func() {
		if recover() != nil {
			err = errPanicked
		}
	}()
	return s.do(ctx, func(ctx context.Context) error {
		outcome := verdict(random.IntN(4)) // half of them succeed
		if random.IntN(3) == 0 {
			lapsed, err := lapseHeld.Run(ctx, s.client, []string{s.key}).Int()
			if err != nil {
				return err
			}
			got.Lock()
			got.lapses += lapsed
			got.Unlock()
			outcome %= 3
		}
		select { // others come by
		case <-time.After(time.Duration(random.IntN(5)) * time.Millisecond):
		case <-ctx.Done():
		}
		switch outcome {
		case fails:
			return errFailed
		case panics:
			panic("as it was told")
		default:
			got.Lock()
			defer got.Unlock()
			got.finished++
			return nil
		}
	})
}

// brief is a hold that ends while Redis stands still, and is long enough to connect in.
var brief = redisinbox.Config{Hold: time.Second, Keep: 10 * time.Minute}

// The same with holds that end by the clock, because Redis stands still for longer: none is lost, and none is taken for
// handled before it is. It goes on until a hold was lost.
func TestContendersWithShortHolds(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	stop := make(chan struct{})
	var pauses sync.WaitGroup
	pauses.Go(func() { // Redis stands still now and then, for longer than a hold
		for {
			select {
			case <-stop:
				return
			case <-time.After(3 * brief.Hold):
			}
			server.pause(t)
			<-time.After(brief.Hold * 3 / 2)
			server.resume(t)
		}
	})
	defer pauses.Wait()
	defer close(stop)
	lost := 0
	for round := uint64(0); lost == 0; round++ {
		if round == 20 {
			t.Fatal("no hold was lost: too little was tested")
		}
		lost += contendersWithShortHolds(t, server, round)
	}
}

// contendersWithShortHolds is one round, and returns how many holds were lost.
func contendersWithShortHolds(t *testing.T, server *server, round uint64) (lost int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	defer cancel()
	client := connect(t, server.address)
	var envs [6]env
	var tallies [len(envs)]tally
	for n := range envs {
		envs[n] = newEnv(t, brief)
		envs[n].client, envs[n].guard = client, newGuard(t, client, brief)
	}
	var group sync.WaitGroup
	for number := range uint64(4) {
		random := rand.New(rand.NewPCG(round, number))
		group.Go(func() {
			for n := range envs {
				contendSlowly(ctx, t, random, envs[n], &tallies[n])
			}
		})
	}
	group.Wait()
	for n := range envs {
		if tallies[n].finished == 0 {
			t.Errorf("event %d is lost", n)
		}
		lost += tallies[n].lost
	}
	return lost
}

func contendSlowly(ctx context.Context, t *testing.T, random *rand.Rand, s env, got *tally) {
	for {
		already, err := s.do(ctx, func(ctx context.Context) error {
			select {
			case <-time.After(time.Duration(random.Int64N(int64(2 * brief.Hold)))):
			case <-ctx.Done():
				return ctx.Err()
			}
			got.Lock()
			defer got.Unlock()
			got.finished++
			return nil
		})
		got.Lock()
		finished := got.finished
		if _, lost := errors.AsType[*redisinbox.LostError](err); lost {
			got.lost++
		}
		got.Unlock()
		if already && finished == 0 {
			t.Error("an event that nobody has handled was taken for handled")
		}
		if redisinbox.Handled(err) {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Errorf("an event was not handled in time: %v", err)
			return
		}
	}
}
