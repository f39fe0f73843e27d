package drain

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
)

// A Member is one relay of a fleet, in a process of its own.
type Member struct {
	URL     string
	Name    string
	Journal string
	Room    int // arrivals that the journal has room for
	// Delay is how long the broker takes for one message.
	Delay time.Duration
	Lease time.Duration
}

// args are the arguments that ParseMember understands.
func (m Member) args() []string {
	return []string{
		"-url", m.URL, "-name", m.Name, "-journal", m.Journal, "-room", fmt.Sprint(m.Room),
		"-delay", m.Delay.String(), "-lease", m.Lease.String(),
	}
}

// ParseMember reads the arguments of a member's process.
func ParseMember(args []string) (Member, error) {
	var m Member
	flags := flag.NewFlagSet("relay", flag.ContinueOnError)
	flags.StringVar(&m.URL, "url", "", "the database")
	flags.StringVar(&m.Name, "name", "", "the relay's name")
	flags.StringVar(&m.Journal, "journal", "", "file for what arrives")
	flags.IntVar(&m.Room, "room", 0, "arrivals that the journal has room for")
	flags.DurationVar(&m.Delay, "delay", 0, "how long the broker takes")
	flags.DurationVar(&m.Lease, "lease", 0, "the lease of a lane")
	return m, flags.Parse(args)
}

// Run is the process: a relay until the context ends.
func (m Member) Run(ctx context.Context) error {
	journal, err := OpenJournal(m.Journal, m.Room)
	if err != nil {
		return err
	}
	defer journal.Close()
	registry, err := Registry(Topic, false)
	if err != nil {
		return err
	}
	running, err := relay.New(relay.Config{
		Database: m.URL, Schema: outboxSchema, Registry: registry, Publisher: m.publisher(journal), Name: m.Name,
		Logger:   slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		Settings: relay.Settings{Lease: m.Lease},
	})
	if err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	return running.Run(ctx)
}

// publisher takes its time and then writes the arrival down, as a broker would before it acknowledges.
func (m Member) publisher(journal *Journal) publish.Publisher {
	return publish.PublisherFunc(func(ctx context.Context, message *publish.Message) error {
		if m.Delay > 0 {
			timer := time.NewTimer(m.Delay)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return journal.Write(message.Seq, message.ID, accountNumber(message.AggregateID))
	})
}
