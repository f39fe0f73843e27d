package console

import (
	"context"
	"fmt"

	"github.com/posthaste-dev/posthaste/relay/operator"
)

// relaysScreen is what the screen of relays and lanes has.
type relaysScreen struct {
	Notice orderNotice
	// Restored tells that relays take the database for restored or copied, and publish nothing.
	Restored bool
	Says     string
	Bad      bool
	Relays   []operator.Relay
	// Ended tells that those are listed that ended as well, Most that there may be more.
	Ended, Most bool
	Lanes       []laneLine
}

// laneLine is a lane with how it does.
type laneLine struct {
	operator.Lane
	// Class is how it looks, Why what is wrong with it; empty: nothing.
	Class, Why string
}

func (q *request) relaysPage() error {
	ended := q.text("ended") == "1"
	relays, err := q.outbox.relaysNow(q.Context(), ended)
	if err != nil {
		return err
	}
	lanes, err := q.outbox.lanesNow(q.Context())
	if err != nil {
		return err
	}
	screen := &relaysScreen{
		Notice: orderNoticeOf(q.text("did")), Relays: relays, Ended: ended, Most: len(relays) == operator.MaxRelays,
		Lanes: lanes,
	}
	if screen.Restored, err = q.outbox.system.restored.get(q.Context(), "", q.outbox.op.Restored); err != nil {
		return err
	}
	screen.Says, screen.Bad = lanesSentence(relays, lanes)
	return q.ok("relays", "Relays and lanes", 5, screen)
}

func (s *served) relaysNow(ctx context.Context, ended bool) ([]operator.Relay, error) {
	return s.system.relays.get(ctx, fmt.Sprint(ended), func(ctx context.Context) ([]operator.Relay, error) {
		return s.op.Relays(ctx, ended)
	})
}

func (s *served) lanesNow(ctx context.Context) ([]laneLine, error) {
	return s.system.lanes.get(ctx, "", func(ctx context.Context) (lines []laneLine, err error) {
		lanes, err := s.op.Lanes(ctx)
		for _, lane := range lanes {
			lines = append(lines, laneOf(lane))
		}
		return lines, err
	})
}

// laneOf says how a lane does. Red is a lane in which nothing is published.
func laneOf(lane operator.Lane) laneLine {
	switch {
	case lane.Relay == "":
		return laneLine{lane, "bad", "nobody holds it"}
	case !lane.Held:
		return laneLine{lane, "bad", "its relay " + lane.RelayName + " does not beat any more"}
	case lane.MarkedEvent != "":
		return laneLine{lane, "warn", relaysOf(lane.Crashes) + " died in a row, and one event is sent alone for that"}
	case lane.Crashes > 0:
		return laneLine{lane, "warn", relaysOf(lane.Crashes) + " died in a row while they held it"}
	case len(lane.Needs) > 0:
		return laneLine{lane, "warn", "events are parked: not every relay knows their type"}
	}
	return laneLine{lane, "good", ""}
}

func relaysOf(n int) string { return counted(n, "relay", "relays") }

// lanesSentence says whether all lanes are held, and tells whether something waits for that.
func lanesSentence(relays []operator.Relay, lanes []laneLine) (says string, bad bool) {
	alive, unheld := 0, 0
	for _, relay := range relays {
		if relay.State == operator.RelayAlive {
			alive++
		}
	}
	for _, lane := range lanes {
		if !lane.Held {
			unheld++
		}
	}
	switch {
	case alive == 0:
		return "No relay is alive: nothing is published. Start outbox-publisher, or look why it stopped.", true
	case unheld > 0:
		are := "are"
		if unheld == 1 {
			are = "is"
		}
		return fmt.Sprintf("%d of %d lanes %s held by nobody who is alive: what is in there waits. A relay takes a lane "+
			"within a lease; if one stays red, look into the logs of the relays.", unheld, len(lanes), are), true
	}
	return fmt.Sprintf("All %d lanes are held, by %s.", len(lanes), relaysOf(alive)), false
}
