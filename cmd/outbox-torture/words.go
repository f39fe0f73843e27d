package main

import (
	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/torture"
)

// kinds are the faults in words.
var kinds = map[check.FaultKind]string{
	check.Kill:                "a relay was killed without warning",
	torture.Leave:             "a relay was asked to stop, and another came in its place",
	check.Pause:               "a relay stood still for longer than its lease, and went on",
	check.BrokerDown:          "a topic refused everything for a while",
	check.AckLost:             "the broker took a message, and the relay was told that it failed",
	check.BrokerCut:           "all connections to the broker broke",
	check.BrokerStalled:       "connections to the broker carried nothing, and stayed open",
	torture.BrokerSlow:        "the broker's answers were late",
	torture.BackendTerminated: "the server ended a session of a relay or a producer",
	torture.QueryCancelled:    "the server cancelled what one was doing",
	torture.ConnectionCut:     "a connection to the database broke, after some bytes of one direction",
	torture.ConnectionStalled: "a connection to the database carried nothing, and stayed open",
	torture.TransactionOpen:   "a producer left a transaction open for seconds after it had written its events",
}

// figures are the counts in words.
var figures = map[string]string{
	"events":           "events of committed transactions",
	"aggregates":       "things that events were about",
	"relays":           "relays at a time",
	"lives":            "processes of relays, one after the other",
	"refused":          "publishes that the broker refused for now, on purpose",
	"refused_terminal": "publishes that it refused for good, on purpose",
	"died_blocking":    "events that died and that later ones of their aggregate waited behind, as their contract says",
	"died_passed":      "events that died and that later ones went past",
	"redrive":          "dead letters that an operator sent again",
	"skip":             "dead letters that an operator let others pass",
	"discard":          "dead letters that an operator gave up",
	"redeliver":        "published events that an operator wanted once more",
	"held_open":        "transactions that stayed open while others overtook them",
	"rollbacks":        "transactions that were rolled back on purpose; their events must not be seen",
	"undone":           "events that were undone by a savepoint; they must not be seen",
	"interrupted":      "transactions whose connection broke; the database told afterwards whether they had committed",
	"delivered":        "events that arrived at the broker",
	"dead":             "events that ended as dead letters, with their reason",
	"discarded":        "events that an operator gave up, by name",
	"ordered_aggregates": "aggregates on a topic of which at least two versions arrived, so that there was an order to " +
		"keep",
	"duplicates":    "messages that arrived again. At least once is the promise; each needs a reason",
	"redelivered":   "copies that arrived, of what an operator wanted once more",
	"unserved":      "must be 0: copies that were wanted, and neither arrived nor were canceled",
	"copies_order":  "must be 0: copies that arrived before that of an earlier event of the aggregate",
	"after_cancel":  "must be 0: copies that were sent when their cancel was acknowledged",
	"lost":          "must be 0: committed, and neither delivered nor dead nor discarded",
	"phantom":       "must be 0: delivered, and never committed",
	"corrupted":     "must be 0: delivered with another content than it was written with",
	"order":         "must be 0: delivered before an earlier event of its aggregate",
	"stuck":         "must be 0: still waiting when everything was healed and drained",
	"illegal":       "must be 0: changes of state that must not happen",
	"unexplained":   "must be 0: duplicates for which no fault and no relay gives a reason",
	"wrong_charges": "must be 0: attempts that were counted against an event for what was not its fault",
	"overlaps": "must be 0: two relays held a lane at once, or two events of an aggregate were under way at " +
		"once",
	"stale_applied":       "must be 0: results that a relay wrote after it had lost the lane",
	"dead_without_letter": "must be 0: dead, and nobody wrote down why",
	"letter_without_dead": "must be 0: dead letters of events that are not dead",
	"held_without_row":    "must be 0: held, and outbox_held does not say how",
	"row_without_held":    "must be 0: in outbox_held, and not held",
	"held_differs":        "must be 0: in outbox_held otherwise than the event is held",
	"malformed":           "must be 0: records that contradict one another",
	"unresolved":          "must be 0: transactions of which nobody knows whether they committed",
	"unwitnessed":         "must be 0: results that a relay took for written, and no row changed",
	"panics":              "must be 0: panics in relays",
	"races":               "must be 0: data races, where relays are built to notice them",
	"leaks":               "must be 0: goroutines that were left when a relay had stopped",
}
