package torture

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
)

// transactionPlan is what a producer's transaction is about to do.
type transactionPlan struct {
	things []string // in one order for all, so that producers never wait for one another in a circle
	loose  bool     // nobody locks the thing, so its events have no order
	hold   time.Duration
	fail   bool // roll back in the end
	undo   bool // emit something first, and roll back to a savepoint
}

// looseThings is how many aggregates have writers that do not exclude one another.
const looseThings = 20

// draw decides what the next transaction does. One in fifty stays open after it has drawn its numbers: the
// numbers of all others pass it by meanwhile.
func draw(random *rand.Rand, aggregates int) transactionPlan {
	d := transactionPlan{fail: random.IntN(25) == 0, undo: random.IntN(16) == 0}
	if random.IntN(50) == 0 {
		d.hold = time.Duration(100+random.IntN(400)) * time.Millisecond
	}
	if random.IntN(20) == 0 {
		d.loose = true
		d.things = []string{fmt.Sprintf("loose-%d", random.IntN(looseThings))}
		return d
	}
	for range 1 + random.IntN(2) {
		d.things = append(d.things, thing(pick(random, aggregates)))
	}
	slices.Sort(d.things)
	d.things = slices.Compact(d.things)
	return d
}

// pick prefers a twentieth of the aggregates, so that some get their events in quick succession.
func pick(random *rand.Rand, aggregates int) int {
	if random.IntN(3) == 0 {
		return random.IntN(max(aggregates/20, 1))
	}
	return random.IntN(aggregates)
}

func thing(n int) string { return fmt.Sprintf("thing-%d", n) }

// made is an event together with what the checker must know about it.
type made struct {
	event outbox.Event
	known check.Event
}

// make makes one to three events of a thing, on either topic, of which doomed in 600 are refused for good.
func (c contracts) make(random *rand.Rand, doomed int, id string, version uint64) ([]made, error) {
	var list []made
	for range 1 + random.IntN(3) {
		one, err := c.one(random, doomed, id, version)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

func (c contracts) one(random *rand.Rand, doomed int, id string, version uint64) (made, error) {
	contract := c.blocking
	if random.IntN(3) == 0 {
		contract = c.skipping
	}
	body := Body{Version: version, Failure: drawFailure(random, doomed), Filler: strings.Repeat("x", random.IntN(400))}
	event := contract.New(id, body)
	event.ID = outbox.NewID()
	event.OccurredAt = time.Now()
	bytes, err := payload(event.ID, event.OccurredAt, body)
	if err != nil {
		return made{}, err
	}
	known := check.Event{
		ID: event.ID, Type: contract.Contract().Type, Topic: contract.Contract().Topic,
		Aggregate: aggregateType + "/" + id, Key: aggregateType + "/" + id, Version: version, Payload: check.SumOf(bytes),
	}
	if random.IntN(4) == 0 {
		event.Headers = map[string]string{"trace": fmt.Sprintf("%016x", random.Uint64()), "lang": "en"}
		known.Headers = sumOfHeaders(event.Headers)
	}
	return made{event, known}, nil
}

// drawFailure lets doomed events in 600 be refused for good and one for its attempts.
func drawFailure(random *rand.Rand, doomed int) Failure {
	switch n := random.IntN(600); {
	case n < doomed:
		return Terminal
	case n == doomed:
		return Stubborn
	default:
		return ""
	}
}
