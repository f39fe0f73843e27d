package relaytest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
)

// Ability is something that a broker does, or that its harness can do to it. Everything is taken to be
// there unless [Harness.Cannot] says why it is not.
type Ability string

// The abilities.
const (
	// Order: messages of one key that are published one after the other arrive in that order.
	Order Ability = "order"
	// Pipeline: the publisher is a [publish.Pipeliner].
	Pipeline Ability = "pipeline"
	// Key: the broker carries the key, and [Arrived] has it.
	Key Ability = "key"
	// Dedupe: a message that is sent twice within a minute under one id arrives once.
	Dedupe Ability = "dedupe"
	// Limit: the broker has a message size limit, [Harness.MaxBytes].
	Limit Ability = "limit"
	// MissingTopic: the broker rejects messages for a topic that does not exist.
	MissingTopic Ability = "missing_topic"
	// Abandon: what was not acknowledged when Publish returned, because the broker was down or hung, is not sent later by
	// the client library.
	Abandon Ability = "abandon"

	// Stop, Slow, Hang, LoseAck, DenyAuth and RejectMessage are the faults of the harness that have these names.
	Stop          Ability = "stop"
	Slow          Ability = "slow"
	Hang          Ability = "hang"
	LoseAck       Ability = "lose_ack"
	DenyAuth      Ability = "deny_auth"
	RejectMessage Ability = "reject_message"
)

var abilities = []Ability{
	Order, Pipeline, Key, Dedupe, Limit, MissingTopic, Abandon, Stop, Slow, Hang, LoseAck, DenyAuth, RejectMessage,
}

// Harness is a broker as the suite sees it. The suite runs its cases one after another, so a fault may
// touch the whole broker, but nobody else may use that broker meanwhile.
type Harness struct {
	// Open makes a publisher with a client of its own, and a function that closes both.
	Open func(ctx context.Context) (publish.Publisher, func() error, error)
	// MakeTopic makes a topic, and RemoveTopic removes it and what is in it. Names are lower case letters,
	// digits and '-', at most 60 of them.
	MakeTopic   func(ctx context.Context, topic string) error
	RemoveTopic func(ctx context.Context, topic string) error
	// Arrived lists what the broker has stored on a topic until now, in the order of arrival, past any
	// fault. It leaves out attributes that the broker or its client adds.
	Arrived func(ctx context.Context, topic string) ([]Arrived, error)

	// MaxBytes is the broker's limit, by what Size counts. A small one makes the suite fast.
	MaxBytes int
	// Size is what the broker counts of a message. Defaults to the length of the body.
	Size func(message *publish.Message) int

	// Stop takes the broker away, its connections included. It is back when the fault ends, with everything that it has
	// acknowledged.
	Stop Fault
	// Slow keeps all acknowledgements back, whether or not messages get through.
	Slow Fault
	// Hang takes what comes, neither stores nor answers it, and loses it when the fault ends: what arrives then was sent
	// after it.
	Hang Fault
	// LoseAck lets messages get through and loses their acknowledgements.
	LoseAck Fault
	// DenyAuth denies the publisher's credentials for the topic.
	DenyAuth Fault
	// RejectMessage makes the broker reject one message of the topic, every time it is sent.
	RejectMessage func(ctx context.Context, topic string, id outbox.ID) (end func(context.Context) error, err error)

	// Cannot gives the reason for every ability that is not there. A case that needs it is skipped with
	// that reason; an ability that is not listed and that no case got to use fails the suite.
	Cannot map[Ability]string

	// Deadline is what a publish gets where nothing is slow. Defaults to 10 seconds.
	Deadline time.Duration
	// Grace is how long a publish may take to return after its context ended. Defaults to 2 seconds.
	Grace time.Duration
	// Recovery is how long a publisher may take to work again after a fault. Defaults to 30 seconds.
	Recovery time.Duration
}

// Fault begins a fault. It holds for publishers that are open and for new ones, until end is called.
type Fault func(ctx context.Context, topic string) (end func(context.Context) error, err error)

// Arrived is a message as the broker has it.
type Arrived struct {
	Body       []byte
	Attributes map[string]string
	Key        string // empty where the broker cannot carry it
}

func (h *Harness) withDefaults() Harness {
	full := *h
	if full.Size == nil {
		full.Size = func(message *publish.Message) int { return len(message.Body) }
	}
	for field, value := range map[*time.Duration]time.Duration{
		&full.Deadline: 10 * time.Second, &full.Grace: 2 * time.Second, &full.Recovery: 30 * time.Second,
	} {
		if *field == 0 {
			*field = value
		}
	}
	return full
}

// validate says what is wrong with the harness itself, all at once.
func (h *Harness) validate() []string {
	var problems []string
	if h.Open == nil || h.MakeTopic == nil || h.RemoveTopic == nil || h.Arrived == nil {
		problems = append(problems, "harness: Open, MakeTopic, RemoveTopic and Arrived must be there")
	}
	for _, ability := range slices.Sorted(maps.Keys(h.Cannot)) {
		if !slices.Contains(abilities, ability) {
			problems = append(problems, fmt.Sprintf("harness: Cannot names %q, which is no ability", ability))
		}
		if h.Cannot[ability] == "" {
			problems = append(problems, fmt.Sprintf("harness: Cannot must give a reason for %s", ability))
		}
	}
	given := map[Ability]bool{
		Limit: h.MaxBytes > 0, Stop: h.Stop != nil, Slow: h.Slow != nil, Hang: h.Hang != nil,
		LoseAck: h.LoseAck != nil, DenyAuth: h.DenyAuth != nil, RejectMessage: h.RejectMessage != nil,
	}
	for _, ability := range slices.Sorted(maps.Keys(given)) {
		switch _, cannot := h.Cannot[ability]; {
		case given[ability] && cannot:
			problems = append(problems, fmt.Sprintf("harness: it has %s, and Cannot says that it has not", ability))
		case !given[ability] && !cannot:
			problems = append(problems, fmt.Sprintf("harness: without %s, Cannot must say why", ability))
		}
	}
	return problems
}
