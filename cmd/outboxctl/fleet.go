package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// newLanes lists the lanes.
func newLanes(root *rootCommand) *cobra.Command {
	var unheld bool
	cmd := root.show(&cobra.Command{
		Use:   "lanes",
		Short: "List the lanes: which relay holds each since when, and how far it is",
		Long: `List the lanes: which relay holds each, since when and for how long still, and how far it is. All events at
or below the floor are settled or held; newest is the highest number in the lane.

A lane that no live relay holds publishes nothing: it is free, or its owner has died and was not ended yet. The viewer
role is enough.`,
		Example: "  outboxctl lanes\n  outboxctl lanes --unheld -o json",
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, p *present.Printer) error {
		return root.look(ctx, func(op *operator.Operator) error {
			all, err := op.Lanes(ctx)
			if err != nil {
				return err
			}
			wanted := []operator.Lane{}
			free := 0
			for _, lane := range all {
				if !lane.Held {
					free++
				}
				if !unheld || !lane.Held {
					wanted = append(wanted, lane)
				}
			}
			if err := present.List(p, wanted, "every lane is held by a live relay", laneColumns(time.Now())...); err != nil {
				return err
			}
			if len(wanted) == 0 {
				return nil
			}
			return p.Line(fmt.Sprintf("%d lanes, %d held, %d not", len(all), len(all)-free, free))
		})
	})
	cmd.Flags().BoolVar(&unheld, "unheld", false, "only those that no live relay holds")
	return cmd
}

func laneColumns(now time.Time) []present.Column[operator.Lane] {
	number := func(name string, of func(operator.Lane) int64) present.Column[operator.Lane] {
		return present.Column[operator.Lane]{
			Name: name, Right: true, Of: func(l operator.Lane) string { return strconv.FormatInt(of(l), 10) },
		}
	}
	return []present.Column[operator.Lane]{
		number("LANE", func(l operator.Lane) int64 { return int64(l.Number) }),
		{
			Name: "HELD BY", Of: func(l operator.Lane) string {
				switch {
				case l.Relay == "":
					return "nobody"
				case !l.Held:
					return l.RelayName + " (dead)"
				}
				return l.RelayName
			},
			Style: func(l operator.Lane) present.Style {
				if l.Held {
					return present.Plain
				}
				return present.Bad
			},
		},
		{Name: "SINCE", Of: func(l operator.Lane) string { return agoIf(l.Relay != "", l.AcquiredAt, now) }},
		{Name: "LEASE", Of: func(l operator.Lane) string { return ahead(now, l.LeaseUntil, l.Relay != "") }},
		number("FLOOR", func(l operator.Lane) int64 { return l.Floor }),
		number("NEWEST", func(l operator.Lane) int64 { return l.Newest }),
		{Name: "NEEDS", Optional: true, Of: func(l operator.Lane) string { return strings.Join(l.Needs, " ") }},
		{Name: "CRASHES", Right: true, Optional: true, Of: func(l operator.Lane) string {
			if l.Crashes == 0 {
				return ""
			}
			return strconv.Itoa(l.Crashes)
		}},
		{Name: "SENT ALONE", Optional: true, Of: func(l operator.Lane) string { return l.MarkedEvent }},
	}
}

// newRelays lists the relays.
func newRelays(root *rootCommand) *cobra.Command {
	var all bool
	cmd := root.show(&cobra.Command{
		Use:   "relays",
		Short: "List the relays: which are alive, their versions, their last beats and their lanes",
		Long: `List the relays: which are alive, their versions, when they started, their last beats, and the lanes that
they hold.

"dead" is one that has not beaten for its lease and that no other relay has ended: its lanes publish nothing until one
does. With --all also those that ended within the last day or so. The viewer role is enough.`,
		Example: "  outboxctl relays\n  outboxctl relays --all -o json",
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, p *present.Printer) error {
		return root.look(ctx, func(op *operator.Operator) error {
			relays, err := op.Relays(ctx, all)
			if err != nil {
				return err
			}
			nobody := "no relay is there: nothing is published"
			if len(relays) == 0 {
				restored, err := op.Restored(ctx)
				if err != nil {
					return err
				}
				if restored {
					nobody = "no relay shows: the database was restored or copied, and one that waits for " +
						"'outboxctl resume --restored' does not"
				}
			}
			return present.List(p, relays, nobody, relayColumns(time.Now())...)
		})
	})
	cmd.Flags().BoolVar(&all, "all", false, "also those that have ended")
	return cmd
}

func relayColumns(now time.Time) []present.Column[operator.Relay] {
	return []present.Column[operator.Relay]{
		{Name: "NAME", Of: func(r operator.Relay) string { return r.Name }},
		{
			Name: "STATE", Of: func(r operator.Relay) string { return string(r.State) },
			Style: func(r operator.Relay) present.Style {
				switch r.State {
				case operator.RelayAlive:
					return present.Good
				case operator.RelayDead:
					return present.Bad
				case operator.RelayEnded:
				}
				return present.Faint
			},
		},
		{Name: "VERSION", Of: func(r operator.Relay) string { return r.Version }},
		{Name: "STARTED", Of: func(r operator.Relay) string { return ago(r.StartedAt, now) }},
		{Name: "LAST BEAT", Of: func(r operator.Relay) string { return agoIf(true, r.BeatAt, now) }},
		{Name: "ENDED", Optional: true, Of: func(r operator.Relay) string { return agoIf(true, r.EndedAt, now) }},
		{Name: "TYPES", Right: true, Of: func(r operator.Relay) string { return strconv.Itoa(r.Types) }},
		{Name: "HOLDS", Right: true, Of: func(r operator.Relay) string { return strconv.Itoa(len(r.Lanes)) }},
		{Name: "LANES", Of: func(r operator.Relay) string { return operator.Ranges(r.Lanes) }},
		{Name: "FAILING TOPICS", Optional: true, Of: func(r operator.Relay) string {
			return strings.Join(r.FailingTopics, " ")
		}},
		{Name: "ID", Of: func(r operator.Relay) string { return r.ID }},
	}
}

// agoIf is ago for what is known, and has happened.
func agoIf(known bool, at, now time.Time) string {
	if !known || at.IsZero() {
		return ""
	}
	return ago(at, now)
}

// ahead is how long something will be so.
func ahead(now, at time.Time, known bool) string {
	switch {
	case !known || at.IsZero():
		return ""
	case at.Before(now):
		return "ended " + short(now.Sub(at)) + " ago"
	}
	return short(at.Sub(now)) + " more"
}
